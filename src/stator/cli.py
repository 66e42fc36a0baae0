"""The command line. Exit codes: 0 fine, 1 the check failed, 2 bad usage. `--json` everywhere."""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import os
import platform
import shutil
import sys
import sysconfig
from collections.abc import Callable, Sequence
from typing import Any

from stator import __version__, config, errors
from stator.api.compile import install
from stator.host import support

FINE, FAILED, BAD_USAGE = 0, 1, 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    options = _parser().parse_args(argv)
    run: Callable[[argparse.Namespace], int] = options.run
    return run(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="stator", description="A just-in-time tracer for PyTorch programs.")
    parser.add_argument("--version", action="version", version=f"stator {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    doctor = _command(commands, "doctor", _doctor, "check versions, the C++ core and the compiler")
    doctor.add_argument("--config", action="store_true", help="show every option, its value and what it does")
    _command(commands, "codes", _codes, "list the codes of all graph breaks")
    why = _command(commands, "why", _why, "explain one code")
    why.add_argument("code", metavar="CODE", help="for example SB0201")
    slots = _command(commands, "slots", _slots, "show what is traced of the builtin types")
    slots.add_argument("types", metavar="TYPE", nargs="*", help="for example list or itertools.chain; default: all")
    run = commands.add_parser("run", help="run a script with torch.compile routed through Stator")
    run.add_argument("script", help="a Python file")
    run.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    run.set_defaults(run=_run_script)
    return parser


def _run_script(options: argparse.Namespace) -> int:
    import runpy

    if not os.path.isfile(options.script):
        print(f"stator run: no such file: {options.script}", file=sys.stderr)
        return BAD_USAGE
    try:
        install()
    except errors.StatorError as error:  # no torch, or one that does not fit
        print(f"stator run: {error}", file=sys.stderr)
        return FAILED
    sys.argv = [options.script, *options.arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(options.script))
    runpy.run_path(options.script, run_name="__main__")
    return FINE


def _command(commands: Any, name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)
    return parser


def _print_json(value: object) -> None:
    print(json.dumps(value, indent=2))


# ---------------------------------------------------------------- doctor


def _doctor(options: argparse.Namespace) -> int:
    checks = [_check_python(), _check_core(), _check_torch(), _check_compiler()]
    healthy = all(check["ok"] for check in checks)
    settings = _settings() if options.config else {}
    if options.json:
        _print_json(
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


def _settings() -> dict[str, Any]:
    return config.describe()


# ---------------------------------------------------------------- the catalogue


def _codes(options: argparse.Namespace) -> int:
    rows = [{"code": kind.code, "name": kind.__name__, "title": kind.title} for kind in errors.kinds()]
    if options.json:
        _print_json(rows)
    else:
        for row in rows:
            print(f"{row['code']}  {row['title']}")
    return FINE


def _why(options: argparse.Namespace) -> int:
    kind = errors.kind(options.code)
    if kind is None:
        return _unknown_code(options.code)
    text = errors.page(kind.code)
    if options.json:
        _print_json({"code": kind.code, "name": kind.__name__, "title": kind.title, "hint": kind.hint, "page": text})
    else:
        print(text or f"# {kind.code}: {kind.title}\n\n{kind.__doc__}\n\nHint: {kind.hint}")
    return FINE


def _unknown_code(code: str) -> int:
    retired = errors.RETIRED.get(code.upper())
    if retired is not None:
        print(f"{code.upper()} is no longer in use: {retired}")
        return FINE
    print(f"stator: unknown code {code!r}; `stator codes` lists all", file=sys.stderr)
    return BAD_USAGE


# ---------------------------------------------------------------- what is traced


def _slots(options: argparse.Namespace) -> int:
    from stator.report import slots  # reads the tables of the tracer, which the other commands do without

    classes = [cls for name in options.types for cls in slots.find(name)] if options.types else slots.builtin_types()
    unknown = [name for name in options.types if not slots.find(name)]
    if unknown:
        print(f"stator: unknown type {unknown[0]!r}; `stator slots` lists all", file=sys.stderr)
        return BAD_USAGE
    if options.json:
        _print_json({slots.full_name(cls): slots.groups(cls) for cls in classes})
    else:
        print(slots.tables(classes) if options.types else slots.page(), end="")
    return FINE
