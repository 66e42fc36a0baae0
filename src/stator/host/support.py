"""Which interpreters Stator runs on, and the one sentence for the others.

Imported before anything else of the package, and run by setup.py from its file: it imports no other part of Stator
and uses nothing that Python 3.7 lacks.
"""

from __future__ import annotations

import os
import sys


def _versions() -> list[tuple[int, int]]:
    """The versions whose bytecode is known: `bytecode/versions` has a file for each, `py311.py` and so on."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    files = [name.split(".")[0] for name in os.listdir(os.path.join(package, "bytecode", "versions"))]
    return sorted({(int(name[2]), int(name[3:])) for name in files if name.startswith("py3")})


VERSIONS = _versions()
FIRST, LAST = VERSIONS[0], VERSIONS[-1]
SUPPORTED = f"CPython {FIRST[0]}.{FIRST[1]} to {LAST[0]}.{LAST[1]}"


def refusal(version: tuple[int, int], implementation: str, free_threaded: bool) -> str | None:
    """Why Stator cannot run on the interpreter described, as one sentence; None where it can."""
    found = f"{version[0]}.{version[1]}"
    if implementation != "cpython":
        return f"Stator runs on {SUPPORTED}, and this is {implementation} {found}"
    if version < FIRST:
        return f"Stator runs on {SUPPORTED}, and this is CPython {found}: use a newer one"
    if version > LAST:
        return f"Stator runs on {SUPPORTED}, and this is CPython {found}: use an older one, or a newer Stator"
    if free_threaded:
        return (
            f"Stator runs on {SUPPORTED} with the global interpreter lock, and this is the free-threaded build "
            f"of {found}: use the ordinary one"
        )
    return None


def refusal_here() -> str | None:
    """`refusal` for the running interpreter."""
    return refusal(sys.version_info[:2], sys.implementation.name, is_free_threaded())


def is_free_threaded() -> bool:
    """Whether this interpreter is a free-threaded build, whose objects are laid out differently, lock or no lock.

    Asked of the build's tag: reading `sysconfig` would cost the import of Stator some milliseconds.
    """
    return "t" in getattr(sys, "abiflags", "")


def require() -> None:
    """Raise ImportError, with one sentence, where Stator cannot run: another interpreter, or no core built for it."""
    reason = refusal_here()
    if reason:
        raise ImportError(reason)
    try:
        import stator._core as _core
    except ImportError as error:
        raise ImportError(_without_core(f" ({error})")) from error
    if _core.__file__ is None:  # the folder of its sources, which imports as an empty namespace package
        raise ImportError(_without_core(""))


def _without_core(why: str) -> str:
    tag = f"CPython {sys.version_info[0]}.{sys.version_info[1]} on {sys.platform}"
    return (
        f"Stator's C++ core is not there for {tag}{why}: install Stator with this Python's pip, "
        "in a source tree with `pip install -e .`, which needs a C++20 compiler"
    )
