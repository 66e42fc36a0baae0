"""Two results of the ruler `overhead` side by side: python compare.py REFERENCE.json SUBJECT.json."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

# Eager's own times are the machine's, not the tracer's.
TIMES = ("_us", "_ms", "_s")
LEFT_OUT = ("eager_us", "wall_s")


def times(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], float]]:
    """Every time in a result, with the path of keys that leads to it."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from times(inner, (*path, str(key)))
    if isinstance(value, int | float) and path[-1].endswith(TIMES) and path[-1] not in LEFT_OUT:
        yield path, value


def rows(reference: object, subject: object) -> Iterator[tuple[str, float, float]]:
    theirs = dict(times(reference))
    for path, ours in times(subject):
        if path in theirs:
            yield " / ".join(path), theirs[path], ours


def main(reference: str, subject: str) -> None:
    print(f"{'':80} {'reference':>12} {'subject':>12} {'ratio':>8}")
    for label, theirs, ours in rows(json.loads(Path(reference).read_text()), json.loads(Path(subject).read_text())):
        ratio = f"{ours / theirs:8.3f}" if theirs > 0 else f"{'-':>8}"
        print(f"{label[-80:]:80} {theirs:12.3f} {ours:12.3f} {ratio}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
