"""One process of `stator explain --fix`: runs the script with files changed, and writes what came of it.

`python -m stator.commands.one_trial REQUEST REPORT SCRIPT ARGUMENTS`; a request has the changed files' texts, and the
lines in them at which both values of a `torch.where` must be of one kind.
"""

from __future__ import annotations

import _io
import argparse
import contextlib
import functools
import importlib.machinery
import io
import json
import os
import sys
import time
from collections.abc import Callable
from types import CodeType
from typing import Any

import stator
from stator.api.compile import compile
from stator.api.layers import layers
from stator.commands.common import FINE
from stator.commands.run import outcome, prepared
from stator.pytorch.modules.compiled_forward import own
from stator.report.events import Broke, Called, Compiled, Listener, listening
from stator.report.graphs import differing_choices
from stator.report.outcome import digest, generators, seed, without_addresses
from stator.report.stats import RecompileRecord

__all__: list[str] = []


class _Watching(Listener):
    """Keeps what broke, and what outermost compiled calls gave."""

    def __init__(self, lines: dict[str, list[int]]) -> None:
        self.breaks: list[tuple[str, str, str]] = []
        self.recompiles: list[tuple[str, str, str]] = []
        self.results: list[str] = []
        self.choices: list[str] = []
        self.graphs = 0
        #: seconds of the processor that tracing and the backend have taken; and when those that are at work began
        self.compiling = 0.0
        self._begun: list[float] = []
        self._lines = {(file, line) for file, numbers in lines.items() for line in numbers}
        self._depth = 0
        self._classes = set[type]()

    def broke(self, event: Broke) -> None:
        self.breaks.append((event.brk.code, event.where, event.brk.reason))

    def recompiled(self, record: RecompileRecord) -> None:
        self.recompiles.append(("SB0601", record.definition, record.reason))

    def begun(self, code: CodeType) -> None:
        self._begun.append(time.process_time())

    def compiled(self, event: Compiled) -> None:
        since = self._begun.pop()
        self.compiling += 0 if self._begun else time.process_time() - since

    def called(self, event: Called) -> None:
        self.graphs += 1
        self.choices += differing_choices(event.gm, self._lines)

    def observed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The same call, whose outermost results are kept: by a digest, with what has become of the arguments."""

        @functools.wraps(call)
        def observing(*args: Any, **kwargs: Any) -> Any:
            self._depth += 1
            try:
                result = call(*args, **kwargs)
            except Exception as error:
                self._keep(f"{type(error).__name__}: {error}", args, kwargs)
                raise
            finally:
                self._depth -= 1
            self._keep(result, args, kwargs)
            return result

        return observing

    def _keep(self, *what: Any) -> None:
        if not self._depth:
            self.results.append(digest(what))

    def compile(self, model: Any = None, **settings: Any) -> Any:
        """`stator.compile`: with the backend "eager", so that what is the same is so to the last bit."""
        if model is None:
            return functools.partial(self.compile, **settings)
        made = compile(model, **{**settings, "backend": "eager", "fullgraph": False, "mode": None, "options": None})
        if not hasattr(type(made), "_orig_mod"):
            return self.observed(made)
        cls = type(made)  # of compiled modules: Stator's own
        if cls not in self._classes:
            self._classes.add(cls)
            cls.__call__ = self.observed(lambda module, *args, **kwargs: own(module, "_stator_call")(*args, **kwargs))
        return made


def _main() -> int:
    request, report, *script = sys.argv[1:]
    with open(request, encoding="utf-8") as file:
        asked: dict[str, Any] = json.load(file)
    options = argparse.Namespace(script=script)
    refused = prepared("explain", options)
    if refused is not None:
        return refused
    _read_instead(asked["texts"])
    watching, said, left = _Watching(asked["lines"]), io.StringIO(), dict[str, Any]()
    stator.compile = watching.compile
    torch = layers().torch
    assert torch is not None
    torch.unroute()
    torch.route(watching.compile)
    seed()
    started = time.process_time()
    with listening(watching), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = outcome(options, left)
    seconds = time.process_time() - started - watching.compiling
    names = {name: value for name, value in left.items() if not name.startswith("__")}
    found = {
        "code": code,
        "breaks": watching.breaks,
        "recompiles": watching.recompiles,
        "choices": watching.choices,
        "graphs": watching.graphs,
        "results": watching.results,
        "said": without_addresses(said.getvalue()),
        "left": {name: digest(value) for name, value in names.items()},
        "generators": generators(),
        "seconds": seconds,
    }
    with open(report, "w", encoding="utf-8") as file:
        json.dump(found, file)
    return FINE


def _read_instead(texts: dict[str, str]) -> None:
    """Have Python read these texts where it reads the files, for scripts and for modules."""
    texts = {os.path.abspath(file): text for file, text in texts.items()}
    opened, get_code = io.open_code, importlib.machinery.SourceFileLoader.get_code

    def open_code(path: str) -> Any:
        text = texts.get(os.path.abspath(path))
        return opened(path) if text is None else io.BytesIO(text.encode())

    def code_of(loader: Any, name: str) -> Any:
        text = texts.get(os.path.abspath(loader.path))
        # What is cached of the file is not asked.
        return get_code(loader, name) if text is None else loader.source_to_code(text.encode(), loader.path)

    io.open_code = _io.open_code = open_code
    importlib.machinery.SourceFileLoader.get_code = code_of  # type: ignore[method-assign, assignment]


if __name__ == "__main__":
    sys.exit(_main())
