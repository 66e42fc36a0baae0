"""Variables named like those of the generated programs, live across calls that break the graph."""

import threading

from apptests.marks import expected_break

LOCK = threading.Lock()


@expected_break("locks that existed before")
def test_names_of_generated_programs():
    run, graph, error, result, END, t0, obj = (object() for _ in range(7))  # noqa: N806
    kept = [run, graph, error, result, END, t0, obj]
    assert LOCK.acquire()
    LOCK.release()
    assert not LOCK.locked()
    for a, b in zip(kept, [run, graph, error, result, END, t0, obj], strict=True):
        assert a is b
