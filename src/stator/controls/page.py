"""Torch's controls besides the options of `torch._dynamo.config`: what Stator does, and the test that says so."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["COMPILER_TEXT", "CONTROLS", "DYNAMO_TEXT", "Control"]


class Control(NamedTuple):
    """A control of torch's.

    Attributes:
        name: how a program writes it.
        does: what it does under Stator.
        test: the file and the function that show it, below `tests/pytorch`.
    """

    name: str
    does: str
    test: str


_STANCE = "test_stance.py"
_ERRORS = "test_torchs_exceptions.py"
_HERE = "test_controls.py"
_CONFIG = "test_dynamo_config.py"

CONTROLS = (
    Control('`set_stance("force_eager")`', "as in torch", f"{_STANCE}::test_force_eager"),
    Control('`set_stance("eager_on_recompile")`', "as in torch", f"{_STANCE}::test_eager_on_recompile"),
    Control('`set_stance("fail_on_recompile")`', "as in torch", f"{_STANCE}::test_fail_on_recompile"),
    Control('`set_stance("eager_then_compile")`', "as in torch", f"{_STANCE}::test_eager_then_compile"),
    Control('`set_stance("aot_eager_then_compile")`', "as in torch", f"{_STANCE}::test_aot_eager_then_compile"),
    Control("`set_stance` as function and decorator", "as in torch", f"{_STANCE}::test_as_function_and_as_decorator"),
    Control(
        "`set_stance` in a compiled function",
        "RuntimeError, as in torch",
        f"{_STANCE}::test_not_in_a_compiled_function",
    ),
    Control(
        "`set_stance(skip_guard_eval_unsafe=True)`, `set_stance(force_backend=…)`",
        "said once not to be honoured: all guards are checked, compile() calls keep their backends",
        f"{_STANCE}::test_what_is_not_honoured_is_said_once",
    ),
    Control(
        "`except torch._dynamo.exc.Unsupported`, `BackendCompilerFailed`, `InvalidBackend`, `RecompileError`, "
        "`FailOnRecompileLimitHit`",
        "catches Stator's `GraphBreakError`, `BackendError`, `UnknownBackendError`, `RecompileError`, "
        "`RecompileLimitError`, whenever torch's are imported",
        f"{_ERRORS}::test_is_caught_as_torchs",
    ),
    Control("`TORCHDYNAMO_DISABLE=1`", "`compile()` returns what it is given", f"{_CONFIG}::test_the_environment"),
    Control(
        "`TORCH_COMPILE_DISABLE=1`, `TORCHDYNAMO_SUPPRESS_ERRORS`, `TORCH_DYNAMO_AUTOMATIC_DYNAMIC_SHAPES`, "
        "`TORCHDYNAMO_VERBOSE`",
        "as the options of `torch._dynamo.config` that they set, whether it has been imported or not",
        f"{_CONFIG}::test_the_environment_is_read_without_torch_dynamo",
    ),
    Control(
        "`options={'guard_filter_fn': …}`",
        "accepted; all guards are kept, which is said once",
        f"{_HERE}::test_guard_filter_fn",
    ),
    Control("`mode` with `options`", "torch's RuntimeError, under `install()`", f"{_HERE}::test_mode_with_options"),
    Control(
        "`isolate_recompiles=`",
        "honoured: otherwise compile() calls with equal settings share the entries that fit",
        f"{_HERE}::test_isolate_recompiles",
    ),
    Control(
        "`dynamic_shapes=`, `shapes_spec=`",
        "honoured, also as `stator.compile(dynamic_shapes=…)`: such sizes are symbols of the first trace, backed ones, "
        "so that 0 and 1 have graphs of their own; with `dynamic=` torch's ValueError",
        f"{_HERE}::test_shape_specifications",
    ),
    Control("`@dynamic_spec`", "honoured, as `dynamic_shapes=`", f"{_HERE}::test_dynamic_spec_decorator"),
    Control("`torch.compiler.set_default_backend`", "as in torch, under `install()`", f"{_HERE}::test_default_backend"),
    Control(
        "`torch._dynamo.mark_unbacked`",
        "symbolic from the first trace, and unknown: a branch on the size breaks; with `strict=True` as `mark_dynamic`",
        f"{_HERE}::test_unbacked_marks",
    ),
    Control(
        "`compiled_module.forward(x)`",
        "compiled, with hooks, as a call of the module is",
        "test_compiled_forward.py::test_it_is_compiled_with_the_module",
    ),
    Control("`torch.compile(torch.sin)`", "compiled", f"{_HERE}::test_functions_in_c"),
    Control("`torch.compile(cls)`", "the class itself; calls of its instances are compiled", f"{_HERE}::test_classes"),
    Control("`compiled.aot_compile()`", "NotImplementedError", f"{_HERE}::test_aot_compile"),
    Control(
        "`torch.compiler.reset()`, `torch._dynamo.reset()`",
        "forget what Stator has compiled, too",
        f"{_HERE}::test_reset",
    ),
    Control(
        "`torch._dynamo.explain`",
        "torch's own report, on what torch's tracer makes of the function; `stator.stats()` has Stator's",
        f"{_HERE}::test_explain",
    ),
    Control(
        "`torch.compiler.disable(recursive=True)`",
        "nothing in the user's function is compiled, after the break either; "
        "what torch disables of its own for its tracer's sake is traced",
        f"{_HERE}::test_disable_is_recursive",
    ),
    Control("`torch._dynamo.error_on_graph_break`", "as in torch", f"{_HERE}::test_error_on_graph_break"),
    Control("`torch.compiler.nested_compile_region`", "traced through", f"{_HERE}::test_nested_compile_region"),
    Control("`torch._dynamo.nonstrict_trace`", "traced through", f"{_HERE}::test_nonstrict_trace"),
    Control(
        "`mark_dynamic(t, dim, min=…, max=…)`",
        "symbolic from the first trace, and taken to be in the range, for which an entry is then good; where the code "
        "fixes the size or narrows the range, ConstraintViolationError with the line, unless "
        "`allow_ignore_mark_dynamic` is set",
        f"{_HERE}::test_code_that_fixes_a_marked_size",
    ),
    Control(
        "`maybe_mark_dynamic(t, dim, min=…, max=…)`",
        "symbolic from the first trace, if the code lets it; a size out of the range raises",
        f"{_HERE}::test_hints",
    ),
    Control(
        "`TORCH_LOGS=graph_breaks,recompiles,…`, `torch._logging.set_logs`",
        "what Stator has to tell under the names `graph_breaks`, `recompiles`, `guards`, `graph`, `graph_code`, "
        "`graph_sizes` and `bytecode` goes to torch's loggers; `STATOR_LOGS` and `stator.set_logs` are Stator's own",
        f"{_HERE}::test_torch_logs",
    ),
)

DYNAMO_TEXT = """# Torch's controls

What a program or its user tells torch's compiler, Stator reads where torch keeps it, at every compile, for what
`stator.compile` and (under `stator.install()`) `torch.compile` have made. It imports nothing of torch for that.
An option that a call of `compile()` sets itself (`recompile_limit=`, `options=`) goes before torch's, and torch's,
where it is not at torch's default, before `stator.config`.

## `torch._dynamo.config`

Every option there is in torch 2.13 to 2.15: *honoured* (it sets the option of Stator's that is named), *warned about*
(once a process, where it is not at its default), or *irrelevant*, with the reason. What torch takes by default is
honoured where torch can tell that it has been set (`capture_scalar_outputs = False`), also by leaving a `patch()`.
"""

COMPILER_TEXT = """
## `torch.compiler.config`

Its aliases reach the options above. Sources have the names that torch gives them (`L['x']`, `G['x']`,
`L['self']._modules['linear']`).
"""
