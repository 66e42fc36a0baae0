"""Words of reports."""

from __future__ import annotations

__all__ = ["counted"]


def counted(number: int, noun: str) -> str:
    """A number and what it counts: "1 graph break", "2 graph breaks"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
