"""The bytecode of the running CPython version: `current` is that version's file."""

from __future__ import annotations

import sys

if sys.version_info >= (3, 13):
    from . import py313 as current
elif sys.version_info >= (3, 12):
    from . import py312 as current
else:
    from . import py311 as current

SUPPORTED = (3, 11) <= sys.version_info[:2] <= (3, 13)
"""Whether this CPython version's bytecode is known."""

__all__ = ["SUPPORTED", "current"]
