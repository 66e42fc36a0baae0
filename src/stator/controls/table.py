"""What Stator makes of each option of `torch._dynamo.config` and `torch.compiler.config`: a row each (a test compares).

`HONOURED` options set an option of Stator's, `WARNED` ones are said once not to be, and `IRRELEVANT` ones are given
with the reason why nothing need be done about them. Values are compared with torch's defaults, so that what nobody
has touched changes nothing. `docs/guide/controls.md` is printed from here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["COMPILER", "DYNAMO", "Honoured", "Irrelevant", "Options", "Warned"]


@dataclass(frozen=True)
class Honoured:
    """An option that Stator has as well.

    Attributes:
        option: its name in `stator.config`.
        default: torch's, whatever the environment says.
        variable: what sets it in the environment.
        parse: the value that the text of the variable stands for.
        but: what Stator does otherwise, which is said once.
        convert: makes Stator's value of torch's; without, it is made one of the default's type.
        restored: options that torch's own code sets and puts back together with this one. While they are as untouched
            as torch can tell, somebody has set this one where torch can tell that, be it to torch's default, which is
            not Stator's.
    """

    option: str
    default: Any
    variable: str = ""
    parse: Callable[[str], Any] = lambda text: text == "1"
    but: str = ""
    restored: tuple[str, ...] = ()
    convert: Callable[[Any], Any] | None = None

    def of(self, value: Any) -> Any:
        """Stator's value for this one of torch's."""
        if self.convert is not None:
            return self.convert(value)
        # A limit is any number for torch: with none at all, nothing is compiled again.
        return max(value, 1) if type(value) is int else type(self.default)(value)

    def __str__(self) -> str:
        where = " where it has been set" if self.restored else ""
        return f"honoured{where}: `stator.config.{self.option}`{self.but and '; '}{self.but}"


@dataclass(frozen=True)
class Warned:
    """An option that Stator does not heed: torch's default, and what happens instead."""

    default: Any
    instead: str

    def __str__(self) -> str:
        return f"warned about: {self.instead}"


@dataclass(frozen=True)
class Irrelevant:
    """An option about which nothing need be done, and why."""

    reason: str

    def __str__(self) -> str:
        return f"irrelevant: {self.reason}"


_HONOURED = {
    "accumulated_cache_size_limit": Honoured("accumulated_recompile_limit", 256),
    "accumulated_recompile_limit": Honoured("accumulated_recompile_limit", 256),
    "allow_ignore_mark_dynamic": Honoured("allow_ignore_mark_dynamic", False),
    "assume_static_by_default": Honoured("assume_static_by_default", True),
    "automatic_dynamic_shapes": Honoured("automatic_dynamic", True, "TORCH_DYNAMO_AUTOMATIC_DYNAMIC_SHAPES"),
    "cache_size_limit": Honoured("recompile_limit", 8),
    "capture_scalar_outputs": Honoured(
        "capture_scalar_outputs",
        False,
        "TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS",
        restored=("allow_empty_graphs", "capture_dynamic_output_shape_ops"),
    ),
    "disable": Honoured("disable", False, "TORCH_COMPILE_DISABLE"),
    "error_on_recompile": Honoured("error_on_recompile", False),
    "fail_on_cache_limit_hit": Honoured("fail_on_recompile_limit_hit", False),
    "fail_on_recompile_limit_hit": Honoured("fail_on_recompile_limit_hit", False),
    # The other modes of torch's are for a DDP that communicates in Python.
    "optimize_ddp": Honoured("optimize_ddp", True, convert=lambda mode: mode is True or mode == "ddp_optimizer"),
    "recompile_limit": Honoured("recompile_limit", 8),
    "specialize_float": Honoured("specialize_float", False),
    "specialize_int": Honoured("specialize_int", False),
    "suppress_errors": Honoured("suppress_errors", False, "TORCHDYNAMO_SUPPRESS_ERRORS", bool),
    "verbose": Honoured("verbose", False, "TORCHDYNAMO_VERBOSE"),
}

_WARNED = {
    "automatic_dynamic_shapes_mark_as": Warned("dynamic", "sizes that vary become backed symbols"),
    "caching_precompile": Warned(False, "nothing is compiled ahead"),
    "compiled_autograd": Warned(False, "the backward pass runs as it is recorded"),
    "compiled_autograd_kwargs_override": Warned({}, "there is no compiled autograd"),
    "cprofile": Warned(False, "profile the program with `stator.config.show_tracer`"),
    "debug_backend_override": Warned("", "each graph goes to the backend of its compile() call"),
    "debug_dynamo_config_override": Warned("", "options hold for all graphs"),
    "debug_inductor_config_override": Warned("", "options hold for all graphs"),
    "dont_skip_tracing": Warned(False, "the standard library and torch's machinery are not traced after a break"),
    "dynamo_profiler": Warned(False, "`stator.stats()` has the times"),
    "enable_compiler_collectives": Warned(False, "ranks decide each for itself"),
    "error_on_dynamo_callback_in_fullgraph_compiled_code": Warned(False, "what a graph calls may be compiled"),
    "force_compile_during_fx_trace": Warned(False, "under another tracer the plain program runs"),
    "force_parameter_static_shapes": Warned(True, "parameters' sizes are constants unless they are marked"),
    "ignore_logger_methods": Warned(set(), "the functions are called"),
    "ignore_logging_functions": Warned(set(), "the functions are called"),
    "inline_invoke_subgraph": Warned(False, "nested regions are handled as without it"),
    "install_free_tensors": Warned(False, "free tensors are inputs of the graph"),
    "leaf_function_check_escaped_gradients": Warned(False, "gradients that escape a leaf function are not looked for"),
    "leaf_function_validate_outputs": Warned(False, "the fake function of a leaf function is not compared"),
    "nontraceable_tensor_subclasses": Warned(set(), "they are traced like others"),
    "numpy_default_complex": Warned("complex128", "NumPy's own defaults hold"),
    "numpy_default_float": Warned("float64", "NumPy's own defaults hold"),
    "numpy_default_int": Warned("int64", "NumPy's own defaults hold"),
    "only_allow_pt2_compliant_ops": Warned(False, "all operations are captured"),
    "prepare_freezing": Warned(False, "parameters stay inputs of the graph"),
    "raise_on_unsafe_aot_autograd": Warned(False, "what is unsafe breaks the graph"),
    "replay_record_enabled": Warned(False, "nothing is recorded"),
    "replay_side_effects": Warned(True, "side effects happen as in eager execution"),
    "repro_after": Warned(None, "no minifier runs"),
    "side_effect_replay_policy": Warned("info", "side effects happen as in eager execution, and none is reported"),
    "strict_precompile": Warned(False, "nothing is compiled ahead"),
    "trace_numpy": Warned(True, "NumPy is traced where the result is NumPy's own"),
    "use_graph_deduplication": Warned(False, "equal parts of a graph are handed over as they are"),
    "verify_correctness": Warned(False, "results are not compared with eager execution"),
}

_BY_REASON = {
    "Stator does what it asks for in any case": """
        allow_empty_graphs allow_rnn allow_unspec_int_on_nn_module capture_dynamic_output_shape_ops
        capture_sparse_compute enable_faithful_generator_behavior enable_trace_contextlib
        enable_trace_load_build_class enable_trace_unittest force_nn_module_property_static_shapes
        nested_graph_breaks trace_autograd_ops wrap_top_frame
        """,
    "it allows guards to be left out, and Stator keeps all it needs": """
        _unsafe_skip_fsdp_module_guards assume_dunder_attributes_remain_unchanged
        automatic_dynamic_exclusion_guard do_not_emit_runtime_asserts guard_nn_modules
        prefer_deferred_runtime_asserts_over_guards skip_fsdp_guards skip_guards_on_constant_func_defaults
        skip_nnmodule_hook_guards skip_no_tensor_aliasing_guards_on_parameters
        skip_tensor_guards_with_matching_dict_tags
        """,
    "it chooses between implementations inside of Dynamo": """
        computed_lazy_constant_max_nodes constant_fold_autograd_profiler_enabled enable_cpp_framelocals_guard_eval
        enable_cpp_guard_manager enable_cpp_symbolic_shape_guards enable_dynamo_decompositions
        enable_invoke_subgraph_regional_compile gc_gen2_threshold_during_compile guard_nn_modules_using_dict_tags
        inline_single_use_invoke_subgraph inline_torch_dispatch_torch_compile invalidate_compile_context_weakrefs
        issue_3_13_0_warning max_saved_pointers_for_recursive_dict_tags_check rewrite_assert_with_torch_assert
        run_gc_after_compile use_lamba_guard_for_object_aliasing use_lazy_graph_module
        use_recursive_dict_tags_for_guards canonicalize_output_graph_node_order
        """,
    "it forbids or allows what Stator decides by whether the result is right": """
        allowed_functions_module_string_ignorelist capture_profiler_record_function
        enable_p2p_compilation error_on_nested_fx_trace error_on_nested_jit_trace fake_tensor_disable_inference_mode
        graph_break_on_nn_param_ctor raise_on_ctx_manager_usage reorderable_logging_functions
        skip_fwd_side_effects_in_bwd_under_checkpoint skip_torchrec use_numpy_random_stream
        """,
    "what it is about is read by other parts of torch": """
        automatic_dynamic_local_pgo automatic_dynamic_remote_pgo cudagraph_backend_keep_input_mutation
        cudagraph_backend_support_input_mutation enable_aot_compile fake_tensor_cache_crosscheck_enabled
        fake_tensor_cache_enabled force_unspec_int_unbacked_size_like_on_torchrec_kjt
        install_free_tensors_for_export log_file_name optimize_ddp_lazy_compile
        record_runtime_overhead same_two_models_use_fp64
        """,
    "it is for reports and debugging of Dynamo": """
        base_dir debug_dir_root generate_pycode graph_deduplication_lint log_compilation_metrics
        log_graph_in_out_metadata pt2_compile_id_prefix record_compile_time_instruction_count repro_forward_only
        repro_ignore_non_fp repro_level repro_tolerance track_nodes_for_deduplication
        """,
    "it is for torch's own tests, or its own use": """
        TYPE_CHECKING _autograd_backward_strict_mode_banned_ops _autograd_backward_strict_mode_conditional_banned_ops
        _custom_ops_profile _dynamic_shapes_spec _save_config_ignore _shapes_spec debug_disable_compile_counter
        debug_force_graph_break_on_leaf_return debug_force_nested_calls inject_BUILD_SET_unimplemented_TESTING_ONLY
        """,
    "it does nothing in torch either": """
        capture_autograd_function capture_func_transforms dead_code_elimination dynamic_shapes
        inline_inbuilt_nn_modules minimum_call_count report_guard_failures
        skip_code_recursive_on_cache_limit_hit skip_code_recursive_on_recompile_limit_hit
        skipfiles_inline_module_allowlist traceable_tensor_subclasses
        """,
}

_COMPILER_HONOURED = {
    name: Honoured(name, "", f"TORCH_COMPILE_{name.upper()}", str)
    for name in ("dynamic_sources", "dynamic_values", "static_sources")
}
_COMPILER_HONOURED["unbacked_sources"] = Honoured(
    "unbacked_sources", "", "TORCH_COMPILE_UNBACKED_SOURCES", str, but="these sizes become backed symbols"
)
_COMPILER_WARNED = {
    "compile_on_one_rank": Warned(False, "a graph has the devices and groups of the rank that compiles it"),
    "job_id": Warned(None, "what has varied is forgotten when the process ends"),
    "pgo_extra_read_key": Warned(None, "what has varied is forgotten when the process ends"),
    "pgo_extra_write_key": Warned(None, "what has varied is forgotten when the process ends"),
}
_COMPILER_BY_REASON = {
    "what it is about is read by other parts of torch": "cache_key_tag force_cudagraph_gc force_disable_caches",
}


def _irrelevant(by_reason: Mapping[str, str]) -> dict[str, Irrelevant]:
    return {name: Irrelevant(reason) for reason, names in by_reason.items() for name in names.split()}


#: what Stator makes of an option, by its name
Options = Mapping[str, Honoured | Warned | Irrelevant]
DYNAMO: Options = {**_HONOURED, **_WARNED, **_irrelevant(_BY_REASON)}
COMPILER: Options = {**_COMPILER_HONOURED, **_COMPILER_WARNED, **_irrelevant(_COMPILER_BY_REASON)}
