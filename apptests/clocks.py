"""Clocks, and what is computed with their readings."""

import time

LOG = []


def test_readings():
    first, second = time.perf_counter(), time.monotonic_ns()
    took, text = time.perf_counter() - first, f"{time.time():.0f}"
    LOG[:] = [first, second, took, 2 * took + 1, second * 2]
    return [type(entry) for entry in LOG], type(text)


def test_kept():
    LOG.append(time.time())
    LOG.append(time.time())
    del LOG[:-2]
    return type(LOG[0])


def test_order():
    begun = time.perf_counter()
    readings = [time.perf_counter() for _ in range(3)]
    LOG[:] = [begun, *readings]
    return [type(entry) for entry in LOG]
