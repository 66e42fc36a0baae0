"""`stator doctor`: do the versions of Python, of torch and of the compiler fit?"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import os
import platform
import shutil
import sysconfig
from typing import Any

from stator import __version__, config
from stator.commands.common import FAILED, FINE, Commands, command, print_json
from stator.host import support


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(commands, "doctor", run, "check versions, the C++ core and the compiler")
    parser.add_argument("--config", action="store_true", help="show every option, its value and what it does")


def run(options: argparse.Namespace) -> int:
    """Check, and tell."""
    checks = [_check_python(), _check_core(), _check_torch(), _check_compiler()]
    healthy = all(check["ok"] for check in checks)
    settings = config.describe() if options.config else {}
    if options.json:
        print_json(
            {"stator": __version__, "ok": healthy, "checks": checks, **({"config": settings} if settings else {})}
        )
    else:
        print(f"stator {__version__}")
        for check in checks:
            print(f"  {'ok  ' if check['ok'] else 'FAIL'} {check['name']}: {check['found']}")
        for name, setting in settings.items():
            print(f"  {name} = {setting['value']!r} (default {setting['default']!r}): {setting['doc']}")
    return FINE if healthy else FAILED


def _check(name: str, ok: bool, found: str) -> dict[str, Any]:
    return {"name": name, "ok": ok, "found": found}


def _check_python() -> dict[str, Any]:
    found = f"{platform.python_implementation()} {platform.python_version()}"
    reason = support.refusal_here()
    return _check("python", reason is None, reason or found)


def _check_core() -> dict[str, Any]:
    try:
        core = importlib.import_module("stator._core")
    except ImportError as error:
        return _check("C++ core", False, f"not usable: {error}")
    # Without the extension the folder of its sources imports as an empty namespace package.
    return _check("C++ core", core.__file__ is not None, core.__file__ or "not built")


def _check_torch() -> dict[str, Any]:
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return _check("torch", True, "not installed; functions without tensors are traced")
    try:
        from stator.pytorch import internals  # which imports torch: the other commands do without

        fits, words = internals.verdict()
    except Exception as error:  # a torch that cannot be imported
        return _check("torch", False, f"{version} is not usable: {type(error).__name__}: {error}")
    return _check("torch", fits, words or f"{version}; its internals are as Stator needs them")


def _check_compiler() -> dict[str, Any]:
    # Only the inductor backend needs one at run time, so its absence is reported and is no failure.
    wanted = os.environ.get("CXX") or (sysconfig.get_config_var("CXX") or "c++")
    for name in (wanted.split()[0], "c++", "g++", "clang++"):
        path = shutil.which(name)
        if path:
            return _check("C++ compiler", True, path)
    return _check("C++ compiler", True, "none found; the inductor backend needs one on the CPU")
