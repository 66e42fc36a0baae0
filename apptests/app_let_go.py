"""Generators and coroutines that the program lets go of: closed, or warned about, there and then."""

import sys
import warnings

from apptests.marks import expected_break


async def nothing():
    pass


def app_open_generators_among_other_objects():
    log = []

    def numbers():
        try:
            yield
        finally:
            log.append("closed")

    def opened():
        generator = numbers()
        next(generator)
        return generator

    for make in (int, opened, int, opened):
        make()
        log.append(make.__name__)
    assert log == ["int", "closed", "opened", "int", "closed", "opened"]


def app_coroutines_that_nobody_awaits():
    log = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for make in (int, nothing, int, nothing):
            make()
            log.append((make.__name__, len(caught)))
    assert log == [("int", 0), ("nothing", 1), ("int", 1), ("nothing", 2)]
    assert str(caught[0].message) == "coroutine 'nothing' was never awaited"


def app_coroutine_whose_text_is_kept():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        coroutine = nothing()
        shown = [repr(coroutine) == repr(coroutine), id(coroutine) == id(coroutine)]
        number = id(coroutine)
        shown.append(number == id(coroutine))
        del coroutine
        shown.append(len(caught))
    assert shown == [True, True, True, 1]


def app_warning_about_coroutines_that_the_program_replaces():
    seen = []
    usual = warnings._warn_unawaited_coroutine
    warnings._warn_unawaited_coroutine = lambda coroutine: seen.append(coroutine.__name__)
    try:
        nothing()
        assert seen == ["nothing"]
    finally:
        warnings._warn_unawaited_coroutine = usual


@expected_break("sys.set_coroutine_origin_tracking_depth")
def app_origins_of_coroutines():
    before = sys.get_coroutine_origin_tracking_depth()
    origins = []

    def make():
        return nothing()

    def origin():
        coroutine = make()
        coroutine.close()
        return coroutine.cr_origin

    try:
        for depth in (0, 1, 2):
            sys.set_coroutine_origin_tracking_depth(depth)
            origins.append(origin())
    finally:
        sys.set_coroutine_origin_tracking_depth(before)
    shown = [frames and [(line, name) for _, line, name in frames] for frames in origins]
    first = make.__code__.co_firstlineno
    assert shown == [None, [(first + 1, "make")], [(first + 1, "make"), (first + 4, "origin")]]
    assert {file for frames in origins[1:] for file, _, _ in frames} == {make.__code__.co_filename}
