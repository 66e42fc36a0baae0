"""Threads call and compile the same functions at once."""

import threading

import stator


def program(n, items):
    total = 0
    for i in range(n):
        total += i
    stator.graph_break()
    items.append(total)
    return [total, {"n": n}]


def test_threads_compile_and_run_at_once():
    wrapped = stator.compile(program, backend="eager", recompile_limit=100)
    failures = []
    start = threading.Barrier(6)

    def work(seed):
        start.wait()
        for n in range(12):
            items: list[int] = []
            expected: list[int] = []
            if wrapped(n + seed % 2, items) != program(n + seed % 2, expected) or items != expected:
                failures.append((seed, n))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert not any(thread.is_alive() for thread in threads)


def test_threads_that_begin_together_share_an_entry():
    """Those that wait for the first to compile find its entry, however many there are."""
    count = 12

    def f(items):
        total = 0
        for _ in range(300):  # the trace takes longer than a thread is left to run
            total = total * 3 + len(items)
        return total

    compiled = stator.compile(f, backend="eager")
    start, results = threading.Barrier(count), []

    def work():
        start.wait()
        results.append(compiled([1, 2]) == f([1, 2]))

    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == [True] * count
    assert stator.stats().frames == 1
