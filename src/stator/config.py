"""Stator's settings: one typed dataclass, in which every option is documented where it is defined.

Three layers, the later wins:

1. the process: the defaults, overridden by ``STATOR_<NAME>`` in the environment when this module is
   imported, and by assignment (``stator.config.verbose = True``);
2. ``with stator.config.patch(verbose=True): …``, which holds for the current context (``contextvars``), so a
   patch never reaches another thread or asyncio task, and ends with the block;
3. ``stator.compile(options={"verbose": True})``, for what that call compiles.

Code reads ``current()`` once per trace and passes the result along: it is immutable, so a trace sees one
consistent set of settings whatever happens meanwhile.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from stator.errors.exceptions import ConfigError

Setting = bool | int | str


def _option(default: Any, doc: str, *, minimum: int | None = None) -> Any:
    """A field of `Config`, with the text that documents it."""
    return dataclasses.field(default=default, metadata={"doc": doc, "minimum": minimum})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Every option of Stator. Immutable; `replace` gives a changed copy, checked as `patch` checks."""

    recompile_limit: int = _option(
        8,
        "Entries a code object may hold in one `stator.compile` call before it runs eagerly.",
        minimum=1,
    )
    accumulated_recompile_limit: int = _option(
        0,
        "Entries a code object may hold over all `stator.compile` calls before it runs eagerly; 0: no limit.",
        minimum=0,
    )
    fail_on_recompile_limit_hit: bool = _option(
        False, "Raise `RecompileLimitError` where a limit is reached, also without `fullgraph`."
    )
    error_on_recompile: bool = _option(False, "Raise `RecompileError` where a frame would be compiled again.")
    disable: bool = _option(False, "Compile nothing more: what no entry fits runs as ordinary Python.")
    strict: bool = _option(False, "Re-check every decision of the guard program with its reference; slow.")
    verbose: bool = _option(False, "Show Stator's own stack in errors and warnings, not only the user's.")
    progress: str = _option(
        "terminal",
        "Tell on stderr how far a compile has come that takes more than a second: `always`, `never`, or `terminal`, "
        "where stderr is one.",
    )
    suppress_errors: bool = _option(
        False, "Run a frame eagerly, with a warning, when Stator or a backend fails on it, instead of raising."
    )
    automatic_dynamic: bool = _option(True, "Make a dimension symbolic once it has been seen to vary.")
    assume_static_by_default: bool = _option(True, "Take sizes as constants at the first trace.")
    allow_ignore_mark_dynamic: bool = _option(False, "Let code fix sizes that are marked as dynamic.")
    specialize_int: bool = _option(False, "Keep ints constants even once they have been seen to vary.")
    specialize_float: bool = _option(False, "Keep floats constants even once they have been seen to vary.")
    capture_scalar_outputs: bool = _option(
        True, "Capture `.item()` and its like as symbolic numbers; otherwise they break the graph."
    )
    capture_branches: bool = _option(
        False,
        "Capture a branch on the value of a tensor as `torch.cond`, where both sides only compute and what they leave"
        " is alike; otherwise it breaks the graph (see `stator why SB0201`).",
    )
    dynamic_sources: str = _option(
        "",
        "Names of sources as torch writes them, or regular expressions for them, with commas between, each with or"
        " without `:dimension`: these sizes and ints are symbols from the first trace on.",
    )
    static_sources: str = _option("", "The same for sizes and ints that stay constants, but for those that are marked.")
    unbacked_sources: str = _option("", "The same as `dynamic_sources`: of symbols there is one kind.")
    dynamic_values: str = _option("", "Numbers, with commas between: sizes and ints that are one of them are symbols.")
    link_outputs: bool = _option(
        False,
        "End a graph wherever one of its differentiable results is made from another, so that autograd knows of it; "
        "otherwise only where what follows in the compiled function asks (see docs/guide/gradients.md).",
    )
    trace_backward: bool = _option(
        True,
        "Make `backward()` and `torch.autograd.grad` operations of the graph, where all that gradients go through was "
        "recorded in it and nobody sees them on their way; otherwise they break the graph (docs/guide/gradients.md).",
    )
    optimize_ddp: bool = _option(
        True,
        "In the forward pass of a DistributedDataParallel, hand graphs to the backend in pieces with a bucket of"
        " parameters each, so that gradients are sent while others are computed.",
    )
    merge_collectives: bool = _option(
        False,
        "Let backends that trace the backward pass send one of equal collectives of one tensor, where ordinary Python"
        " sends each: for programs of which all ranks run compiled (see docs/guide/distributed.md).",
    )
    trace_step_limit: int = _option(
        500_000, "Instructions one trace may execute before the frame is given up and runs eagerly.", minimum=1
    )
    fullgraph_step_limit: int = _option(
        1_500_000, "The same with `fullgraph=True`, where giving up is an error: worth more time.", minimum=1
    )
    inline_depth_limit: int = _option(
        200, "Depth of inlined calls at which a trace breaks; the recursion limit of the traced program.", minimum=1
    )
    memo_metadata: bool = _option(
        True, "Remember the metadata of a result by operation and argument metadata, instead of asking torch again."
    )
    undo_limit: int = _option(
        1 << 20,
        "Bytes of inputs that are copied before a graph which writes to them, where its backend cannot tell what it has"
        " written when it fails (Inductor). The copies are put back then, and the program fails as in eager execution."
        " A graph that writes more raises the backend's own error.",
        minimum=0,
    )
    show_tracer: bool = _option(False, "Let profilers, debuggers and coverage see what Stator itself does in tracing.")
    check_ir: bool = _option(
        False, "Check after each trace that graph, guards and residual program agree (see codegen/ir_check.py)."
    )
    check_ranks: bool = _option(
        False,
        "Compare what the processes of a group compile: where their collectives would differ, `RankDivergenceError` is"
        " raised on all of them instead of a hang (see docs/guide/distributed.md).",
    )

    def replace(self, **changes: Setting) -> Config:
        """A copy with `changes`; unknown names and values of the wrong type raise `ConfigError`."""
        return dataclasses.replace(self, **checked(changes))


_DEFAULTS = Config()
_FIELDS: dict[str, dataclasses.Field[Any]] = {f.name: f for f in dataclasses.fields(Config)}
_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off", ""})


def checked(changes: Mapping[str, object], *, where: str = "") -> dict[str, Any]:
    """`changes` as a dict, after checking names, types and ranges; `where` names the culprit in the message."""
    for name, value in changes.items():
        _check(name, value, where)
    return dict(changes)


def _check(name: str, value: object, where: str) -> None:
    prefix = f"{where}: " if where else ""
    if name not in _FIELDS:
        import difflib  # only for the message

        close = difflib.get_close_matches(str(name), _FIELDS, n=3)
        advice = f"did you mean {' or '.join(map(repr, close))}?" if close else f"known: {', '.join(_FIELDS)}"
        raise ConfigError(f"{prefix}unknown option {name!r}; {advice}")
    kind = type(_FIELDS[name].default)
    # Exact types: True is an int, and recompile_limit=True is a mistake.
    if type(value) is not kind:
        raise ConfigError(f"{prefix}option {name!r} must be {kind.__name__}, not {type(value).__name__} ({value!r})")
    minimum = _FIELDS[name].metadata["minimum"]
    if minimum is not None and isinstance(value, int) and value < minimum:
        raise ConfigError(f"{prefix}option {name!r} must be at least {minimum}, not {value}")


def _parse_bool(text: str) -> bool:
    word = text.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError(text)


_PARSERS: dict[type, Callable[[str], Setting]] = {bool: _parse_bool, int: int, str: str}


def from_environment(environ: Mapping[str, str]) -> Config:
    """The defaults, overridden by the `STATOR_<NAME>` variables of `environ`."""
    changes: dict[str, Setting] = {}
    for name, field in _FIELDS.items():
        variable = f"STATOR_{name.upper()}"
        text = environ.get(variable)
        if text is None:
            continue
        kind = type(field.default)
        try:
            changes[name] = _PARSERS[kind](text)
        except ValueError:
            raise ConfigError(f"{variable}={text!r} is not a valid {kind.__name__}") from None
        _check(name, changes[name], variable)
    return dataclasses.replace(_DEFAULTS, **changes)  # type: ignore[arg-type]


_process: Config = from_environment(os.environ)
# What patch() has put over the process's settings; a chain of patches is merged as it is built.
_patches: ContextVar[Mapping[str, Any]] = ContextVar("stator_config", default=types.MappingProxyType({}))


def current(overrides: Mapping[str, Any] | None = None) -> Config:
    """The settings that hold here: process, then patches, then `overrides` (already `checked`)."""
    patches = _patches.get()
    if not patches and not overrides:
        return _process
    return dataclasses.replace(_process, **{**patches, **(overrides or {})})


@contextmanager
def patch(changes: Mapping[str, Setting] | None = None, /, **more: Setting) -> Iterator[None]:
    """Change settings for a block, or for a function it decorates; only in the current context.

    >>> with stator.config.patch(recompile_limit=2): ...
    """
    token = _patches.set({**_patches.get(), **checked({**(changes or {}), **more})})
    try:
        yield
    finally:
        _patches.reset(token)


def set_process(**changes: Setting) -> None:
    """Change settings for the whole process, every thread."""
    global _process
    _process = _process.replace(**changes)


def names() -> tuple[str, ...]:
    """The names of all options, in the order of their definition."""
    return tuple(_FIELDS)


def describe() -> dict[str, dict[str, Setting]]:
    """For each option its default, the value that holds here and its documentation."""
    here = current()
    return {
        name: {"default": getattr(_DEFAULTS, name), "value": getattr(here, name), "doc": field.metadata["doc"]}
        for name, field in _FIELDS.items()
    }


class _ConfigModule(types.ModuleType):
    """Lets the module itself be read and assigned to: `stator.config.verbose = True`."""

    def __getattr__(self, name: str) -> Any:
        if name in _FIELDS:
            return getattr(current(), name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        # Names the module has (its own globals, import machinery) stay ordinary attributes.
        if name in self.__dict__ or name.startswith("__"):
            super().__setattr__(name, value)
        else:
            set_process(**{name: value})

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_FIELDS})


sys.modules[__name__].__class__ = _ConfigModule
