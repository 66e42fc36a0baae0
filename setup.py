"""Builds the extension module ``stator._core``: C++20 against CPython alone; torch is not needed."""

import os
import runpy
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup

CORE = Path("src/stator/_core")
#: one file per CPython version holds all that touches frame internals; the others are not compiled
INTERNALS = f"frames{sys.version_info.major}{sys.version_info.minor}.cpp"
SANITIZE = os.environ.get("STATOR_SANITIZE") == "1"
#: the Makefile's builds stop at a warning; who installs from source has a compiler that nobody here has tried
WARNINGS = ["-Wall", "-Wextra", "-Werror"] if os.environ.get("STATOR_WERROR") == "1" else []


def sources() -> list[str]:
    """The C++ files for the running interpreter."""
    reason = runpy.run_path("src/stator/host/support.py")["refusal_here"]()
    if reason:
        raise SystemExit(f"error: {reason}")
    if sys.platform == "win32":
        raise SystemExit("error: Stator runs on Linux and macOS: its core is written for POSIX threads and dlopen")
    files = sorted(p for p in CORE.glob("*.cpp") if not p.name.startswith("frames") or p.name == INTERNALS)
    return [str(p) for p in files]


flags = ["-std=c++20", "-O2", *WARNINGS, "-fvisibility=hidden"]
link = []
if SANITIZE:
    flags += ["-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
    link += ["-fsanitize=address,undefined"]


def headers() -> list[str]:
    """Where Debian's pyconfig.h finds its other half: no compiler looks there if that Python is not in /usr.

    Other libraries' headers lie there too, C's own among them: those of the compiler's machine come first.
    """
    folder = Path(sysconfig.get_path("include"))
    half = folder.parent / str(sysconfig.get_config_var("MULTIARCH")) / folder.name
    return ["-idirafter", str(folder.parent)] if half.is_dir() else []


def urls() -> dict[str, str]:
    """The project's addresses: of the repository that builds the release, where one does."""
    server, repository = os.environ.get("GITHUB_SERVER_URL"), os.environ.get("GITHUB_REPOSITORY")
    if not server or not repository:
        return {}
    home = f"{server}/{repository}"
    return {"Homepage": home, "Changelog": f"{home}/blob/main/CHANGELOG.md", "Issues": f"{home}/issues"}


setup(
    project_urls=urls(),
    ext_modules=[
        Extension(
            "stator._core",
            sources(),
            depends=[str(p) for p in CORE.glob("*.h")],
            extra_compile_args=[*flags, *headers()],
            extra_link_args=[*link, "-ldl"],
            language="c++",
        )
    ],
)
