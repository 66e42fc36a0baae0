"""Computed NaNs: each run makes its own, which dicts and sets tell apart."""

import time

from apptests.marks import expected_break

KEPT = {}


def remember(number, where=KEPT):
    time.sleep(0)  # a graph break
    where.setdefault(number, number)
    return where.setdefault(number, None)


@expected_break("time.sleep")
def test_nans_of_several_runs():
    KEPT.clear()
    first, second = remember(float("nan")), remember(float("nan"))
    assert first is not None
    assert second is not None
    assert first is not second
    assert len(KEPT) == 2


@expected_break("time.sleep")
def test_one_nan_stays_one():
    number = float("nan")
    both = [number, max(number, number)]
    time.sleep(0)
    assert both[0] is both[1]
    assert both.count(number) == 2
