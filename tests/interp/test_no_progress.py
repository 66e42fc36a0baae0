"""An instruction that can be neither traced nor executed by generated code, first thing in a continuation."""

import stator


def partial(errors):
    try:
        raise ExceptionGroup("g", errors)
    except* ValueError:
        pass


def caught(errors):
    try:
        partial(errors)
    except BaseException as e:
        return e
    return None


def outermost(errors):
    return [type(e) for e in caught(errors).exceptions]


def test_a_frame_that_cannot_go_on_is_run_as_it_is():
    """A trace of its callers' continuations would end where it began, and its entry call itself for ever."""
    errors = [ValueError(1), KeyError(2)]
    assert stator.testing.break_everywhere(outermost, (errors,)) > 10
