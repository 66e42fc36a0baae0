"""What becomes of a frame that no entry fits: it is compiled, or runs as ordinary Python, alone or with its callees."""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import TYPE_CHECKING

from stator import errors
from stator._core import CodePolicy, Entry, Region, call_with_tracing, set_code_policy
from stator.bytecode.continuation import is_continuation
from stator.compiler import mark_models
from stator.compiler.compile_frame import FrameCompiler
from stator.compiler.decision import keep_decision
from stator.compiler.reasons import called_code, nearest, reason_for
from stator.compiler.region import ALONE, forget_all
from stator.controls import resets
from stator.host.turns import turn
from stator.interp import opcodes
from stator.interp.policy import (
    decided_by_function,
    is_called_back,
    is_machinery,
    other_at_work,
    runs_whole,
    worth_tracing,
)
from stator.marks.stance import current_stance, is_first_call
from stator.models.functions.module import is_undermined
from stator.space.host_types import Host

if TYPE_CHECKING:
    from stator.compiler.region import CompileRegion

mark_models.install()
opcodes.load()


def on_miss(
    region: Region, function: FunctionType, code: CodeType, args: list[Host]
) -> Entry | errors.StatorError | None:
    """The frame hook found no entry for this frame: make one, or None to run the frame as it is this time.

    What is told to the user is returned, to be raised: the tracer's own frames are not in its traceback.
    """
    try:
        return _entry_for(region, function, code, args)
    except errors.InternalError:
        raise
    except errors.StatorError as e:
        if region.owner.config.verbose:
            raise
        return e.with_traceback(None)


def _entry_for(region: Region, function: FunctionType, code: CodeType, args: list[Host]) -> Entry | None:
    compile_region: CompileRegion | None = region.owner
    if is_undermined():
        return None
    if compile_region is None:
        return None  # a region that no compile() call has made
    if compile_region.root is None:
        compile_region.root = code
    other = other_at_work(inside=code is not compile_region.root)
    if other is not None:
        return compile_region.leave_to(other, code)
    if code is not compile_region.root and runs_whole(code):
        return ALONE  # as long as it is called by others: it may be compiled by itself
    if code is not compile_region.root and is_called_back(args) and not is_continuation(code):
        set_code_policy(code, CodePolicy.RUN_RECURSIVELY)
        return ALONE
    whole = decided_by_function(code, function)
    if whole is not None:
        return keep_decision(compile_region, code, whole)
    if code is not compile_region.root and not worth_tracing(code):
        alone = is_machinery(code)
        set_code_policy(code, CodePolicy.RUN_RECURSIVELY if alone else CodePolicy.SKIP)
        return ALONE if alone else None
    if not compile_region.fullgraph:
        import bytecode  # noqa: F401  here, and not at the first break: the trace may look at sys.modules
    if compile_region.runs_eagerly(code, function, args):
        return None
    if current_stance() == "force_eager":
        return None
    with turn() as waited:
        return _in_turn(compile_region, function, code, args, waited=waited)


def _in_turn(
    compile_region: CompileRegion, function: FunctionType, code: CodeType, args: list[Host], *, waited: bool
) -> Entry | None:
    """Find or make an entry, while no other thread does."""
    resets.follow(forget_all)
    stance, config = current_stance(), compile_region.config
    found = compile_region.fitting(code, function, args, config) if waited else None
    if found is not None:
        return found
    called = called_code(code, function, args)
    shared = None if config.disable else compile_region.adopt(code, called, function, args, config)
    if shared is not None:
        return shared
    if stance == "eager_on_recompile":
        return None
    if stance == "fail_on_recompile":
        raise RuntimeError(_recompile_text(compile_region, function, code, args))
    if config.disable:
        return None
    if stance != "default" and not compile_region.is_first and _is_first_call(compile_region, code, called, args):
        if stance == "eager_then_compile":
            return None
        compile_region = compile_region.for_first_calls()
    elif not compile_region.may_compile(code, called, function, args, config):
        return None
    compiler = FrameCompiler(compile_region, config, function, code, called, args)
    if config.show_tracer:
        return call_with_tracing(compiler.compile)  # type: ignore[no-any-return]
    return compiler.compile()


def _is_first_call(compile_region: CompileRegion, code: CodeType, called: CodeType, args: list[Host]) -> bool:
    return is_first_call(compile_region.state_of(called), compile_region.pool.state_of(called), code, args)


def _recompile_text(compile_region: CompileRegion, function: FunctionType, code: CodeType, args: list[Host]) -> str:
    text = (
        "Detected recompile when torch.compile stance is 'fail_on_recompile'. "
        f"filename: '{code.co_filename}', function name: '{code.co_name}', line number: {code.co_firstlineno}"
    )
    entries = compile_region.region.entries(code)
    if not entries:
        return text
    reason = reason_for(nearest(entries, function, args), code, function, args)
    return f"{text}\n    the last guard failure: {reason.sentence}"
