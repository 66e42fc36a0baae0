"""Nothing that was compiled or looked at outlives its owner."""

import gc
import os
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

import stator


class Big:
    value = 3


def program(x, other):
    return x.value + other[0].value


def test_arguments_are_freed_without_the_garbage_collector():
    gc.collect()
    gc.disable()
    try:
        first, second = Big(), Big()
        second.extra = [first]
        alive = [weakref.ref(first), weakref.ref(second)]
        wrapped = stator.compile(program, backend="eager")
        assert wrapped(first, [second]) == 6
        assert wrapped(first, [second]) == 6
        del first, second
        assert [ref() for ref in alive] == [None, None]
    finally:
        gc.enable()


def resident_pages() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1])


def growth() -> tuple[int, int]:
    """Objects and pages that 8,000 rounds of compile and reset leave behind, when 2,000 have warmed up."""

    def one_round():
        wrapped = stator.compile(program, backend="eager")
        wrapped(Big(), [Big()])
        stator.reset()

    for _ in range(2_000):
        one_round()
    gc.collect()
    objects, pages = len(gc.get_objects()), resident_pages()
    for _ in range(8_000):
        one_round()
    gc.collect()
    return len(gc.get_objects()) - objects, resident_pages() - pages


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the size of the process is read from /proc")
def test_ten_thousand_rounds_of_compile_and_reset_do_not_grow():
    # In a process of its own: the pages of one in which other tests have run come and go. The address sanitizer is
    # told to give memory back as it is freed.
    sanitizer = f"{os.environ.get('ASAN_OPTIONS', '')}:quarantine_size_mb=0:thread_local_quarantine_size_kb=0"
    settings = {**os.environ, "ASAN_OPTIONS": sanitizer}
    ran = subprocess.run([sys.executable, __file__], capture_output=True, text=True, timeout=270, env=settings)
    assert ran.returncode == 0, ran.stderr
    objects, pages = map(int, ran.stdout.split())
    assert objects < 100
    assert pages < 1000


if __name__ == "__main__":
    print(*growth())
