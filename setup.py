"""Builds the extension module ``stator._core``: C++20 against CPython alone; torch is not needed."""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup

CORE = Path("src/stator/_core")
#: one file per CPython version holds all that touches frame internals; the others are not compiled
INTERNALS = f"frames{sys.version_info.major}{sys.version_info.minor}.cpp"
SANITIZE = os.environ.get("STATOR_SANITIZE") == "1"


def sources() -> list[str]:
    """The C++ files for the running interpreter."""
    if not (CORE / INTERNALS).exists():
        raise SystemExit(f"Stator supports CPython 3.11 to 3.13, not {sys.version.split()[0]}")
    files = sorted(p for p in CORE.glob("*.cpp") if not p.name.startswith("frames") or p.name == INTERNALS)
    return [str(p) for p in files]


flags = ["-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden"]
link = []
if SANITIZE:
    flags += ["-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
    link += ["-fsanitize=address,undefined"]

setup(
    ext_modules=[
        Extension(
            "stator._core",
            sources(),
            depends=[str(p) for p in CORE.glob("*.h")],
            extra_compile_args=flags,
            extra_link_args=[*link, "-ldl"],
            language="c++",
        )
    ]
)
