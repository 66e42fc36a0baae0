"""Every private name of torch that Stator uses: what for, the public name there is for it, and the shape it must have.

    internals.dispatch_keys(tensor)          # torch._C._dispatch_keys

torch promises nothing about these names. `check()` looks at all of them before anything of Stator is registered: a
torch that differs is refused as a whole, in words that name each difference, and is never half in use. A name is
resolved when it is first asked for; those that torch does not load by itself (`LATER`) are checked then.

Not here are the names by which a function of torch is only recognised (`("torch._utils", "is_compiling")`: if torch has
none, none is met), and the marks that torch.compile's own users leave on their objects (`_dynamo_dynamic_indices` …).
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from stator.errors import InternalError
from stator.pytorch.private_name import CLASS, FIELD, FUNCTION, MODULE, OBJECT, Name, look_at, resolve

__all__ = ["CLASS", "FIELD", "FUNCTION", "MODULE", "OBJECT", "TESTED", "Name", "check", "differences", "verdict"]

#: the oldest torch there is a chance with, and the newest that Stator is tested with
TESTED = ((2, 13), (2, 15))
INSTALL = 'pip install "torch>=2.13,<2.16"'


_OF_TENSORS = {
    "base": Name("torch._C.TensorBase._base", FIELD, "what a tensor is a view of"),
    "version": Name("torch._C.TensorBase._version", FIELD, "how often a tensor has been written"),
    "impl_address": Name("torch._C.TensorBase._cdata", FIELD, "where the C++ tensor lies that guards read"),
    "storage_address": Name("torch._C.StorageBase._cdata", FIELD, "which tensors share memory", public="data_ptr"),
    "has_symbolic_sizes": Name("torch._C.TensorBase._has_symbolic_sizes_strides", FIELD, "whether a size is a symbol"),
    "gradient_hooks": Name("torch._C.TensorBase._backward_hooks", FIELD, "the hooks on a tensor's gradient"),
    "accumulation_hooks": Name(
        "torch._C.TensorBase._post_accumulate_grad_hooks", FIELD, "the hooks on a gradient that has been accumulated"
    ),
    "use_count": Name("torch._C.TensorBase._use_count", FUNCTION, "whether autograd holds a tensor"),
    "results_of_node": Name(
        "torch._C._FunctionBase._input_metadata", OBJECT, "the tensors that a node of autograd's graph has made"
    ),
    "pad": Name("torch._C._nn.pad", FUNCTION, "what torch.nn.functional.pad calls"),
    "is_view": Name("torch._C.TensorBase._is_view", FUNCTION, "whether autograd takes a tensor for a view"),
    "nested_sizes": Name("torch._C.TensorBase._nested_tensor_size", FUNCTION, "the sizes within a nested tensor"),
    "dispatch_keys": Name("torch._C._dispatch_keys", FUNCTION, "what kind of tensor it is, in one number"),
    "mark_coalesced": Name("torch._C.TensorBase._coalesced_", FUNCTION, "a sparse fake is asked as if it were not"),
    "functorch_level": Name("torch._C._functorch.maybe_get_level", FUNCTION, "the transform a tensor belongs to"),
    "creation_meta": Name("torch._C._autograd._get_creation_meta", FUNCTION, "how a view was made, to autograd"),
    "storage_users": Name("torch._C._storage_Use_Count", FUNCTION, "whether a storage has other tensors"),
    "make_subclass": Name("torch._C.TensorBase._make_subclass", FUNCTION, "a leaf that is made before the graph runs"),
    "set_versions": Name(
        "torch._C._autograd._unsafe_set_version_counter",
        FUNCTION,
        "tensors that are put back have not been written",
        public="autograd._unsafe_preserve_version_counter",
    ),
}

_CLASSES = {
    "TensorBase": Name(
        "torch._C.TensorBase",
        CLASS,
        "the C class of tensors: its members read them without their overrides",
        has=("shape", "dtype", "device", "layout", "requires_grad", "is_leaf", "stride", "size", "storage_offset"),
        public="torch.Tensor",
    ),
    "VariableFunctions": Name(
        "torch._C._VariableFunctions",
        OBJECT,
        "torch's C functions on tensors, whatever torch binds their names to",
        has=("lstm", "gru", "rnn_tanh", "rnn_relu"),
        public="torch",
    ),
    "OpOverload": Name("torch._ops.OpOverload", CLASS, "operators that a program calls", has=("name", "__call__")),
    "OpOverloadPacket": Name(
        "torch._ops.OpOverloadPacket", CLASS, "operators that a program calls", has=("__getattr__",)
    ),
    "OpNamespace": Name("torch._ops._OpNamespace", CLASS, "`torch.ops.aten` is traced", has=("__getattr__",)),
    "Ops": Name("torch._ops._Ops", CLASS, "`torch.ops` is traced", has=("__getattr__",)),
    "HigherOrderOperator": Name("torch._ops.HigherOrderOperator", CLASS, "cond, scan … are left whole", has=("name",)),
    "VF": Name("torch._VF", OBJECT, "functions that torch.nn.functional calls are traced", has=("lstm", "stft")),
    "TorchDispatchMode": Name(
        "torch.utils._python_dispatch.TorchDispatchMode", CLASS, "sees what an operation writes", has=("__enter__",)
    ),
    "CachingMode": Name(
        "torch.utils.checkpoint._CachingTorchDispatchMode", CLASS, "one of the contexts of a selective checkpoint"
    ),
    "infer_parameters": Name(
        "torch.nn.modules.lazy.LazyModuleMixin._infer_parameters", FUNCTION, "lazy modules become others", takes=4
    ),
    "around_checkpoint": Name(
        "torch.utils.checkpoint._checkpoint_without_reentrant_generator",
        FUNCTION,
        "what a checkpoint does before a function and after it",
        takes=6,
        public="torch.utils.checkpoint.checkpoint",
    ),
    "sac_ignored_ops": Name(
        "torch.utils.checkpoint.SAC_IGNORED_OPS", OBJECT, "operators that no policy of a checkpoint is asked about"
    ),
    "TorchFunctionMode": Name("torch.overrides.TorchFunctionMode", CLASS, "what a mode is given", has=("__enter__",)),
    "DeviceContext": Name("torch.utils._device.DeviceContext", CLASS, "a default device", public="torch.device"),
    "InferenceMode": Name("torch._C._InferenceMode", CLASS, "inference mode, as long as a trace wants it", takes=None),
    "GlobalStateGuard": Name(
        "torch._C._dynamo.guards.GlobalStateGuard", CLASS, "whether torch's global state is as it was", has=("check",)
    ),
    "TracingContext": Name("torch._guards.TracingContext", CLASS, "what AOTAutograd looks for", takes=1),
    "CompileContext": Name("torch._guards.CompileContext", CLASS, "what AOTAutograd looks for", takes=1),
    "CompileId": Name(
        "torch._guards.CompileId", CLASS, "what AOTAutograd looks for", words=("frame_id", "frame_compile_id")
    ),
    "StorageOverlap": Name(
        "torch._guards.StorageOverlap",
        CLASS,
        "AOTAutograd's assumption",
        words=("overlapping_sources", "non_overlapping_sources"),
    ),
    "FakeTensorMode": Name(
        "torch._subclasses.fake_tensor.FakeTensorMode",
        CLASS,
        "operations without data",
        words=("shape_env",),
        has=("from_tensor", "__enter__", "_dispatch_impl", "validate_and_convert_non_fake_tensors"),
        public="torch.fx.experimental.proxy_tensor.make_fx",
    ),
    "MetaConverter": Name(
        "torch._subclasses.meta_utils.MetaConverter", CLASS, "fakes of existing tensors", has=("meta_tensor",)
    ),
    "FakeTensorConverter": Name("torch._subclasses.fake_tensor.FakeTensorConverter", CLASS, "fakes of tensors"),
    "Source": Name("torch._guards.Source", CLASS, "where tensors and numbers come from", has=("name",)),
    "ChainedSource": Name("torch._guards.ChainedSource", CLASS, "a step to where one comes from"),
    "GuardSource": Name("torch._guards.GuardSource", CLASS, "what kind of origin it is", has=("LOCAL", "CONSTANT")),
    "fake_tensor": Name(
        "torch._subclasses.fake_tensor",
        MODULE,
        "what the failure of an operation without data means",
        has=(
            "DynamicOutputShapeException",
            "DataDependentOutputException",
            "UnsupportedFakeTensorException",
            "UnsupportedOperatorException",
            "FakeTensor",
            "in_kernel_invocation_manager",
        ),
    ),
    "ScriptMethod": Name("torch._C.ScriptMethod", CLASS, "a method of a module of TorchScript"),
    "CachedForward": Name("torch.jit._script._CachedForward", CLASS, "how such a module finds its `forward`"),
    "LeafCallable": Name(
        "torch._higher_order_ops.invoke_leaf_function._LeafCallable", CLASS, "a leaf function in a graph", takes=1
    ),
}

_SCRIPTS = {
    "function_of_graph": Name(
        "torch._C._create_function_from_graph", FUNCTION, "a scripted module is called as a function of its parameters"
    ),
}

_STATE = {
    "DisableTorchFunctionSubclass": Name(
        "torch._C.DisableTorchFunctionSubclass", CLASS, "reads tensors without their overrides"
    ),
    "DisableTorchFunction": Name("torch._C.DisableTorchFunction", CLASS, "guards compute what no override sees"),
    "EnableTorchFunction": Name("torch._C._EnableTorchFunction", CLASS, "runs a subclass's override"),
    "TorchFunctionState": Name(
        "torch._C._TorchFunctionState",
        CLASS,
        "whether overrides are on",
        has=("ENABLED", "SUBCLASSES_DISABLED", "ALL_DISABLED"),
    ),
    "torch_function_state": Name("torch._C._get_torch_function_state", FUNCTION, "whether overrides are on"),
    "set_torch_function_state": Name("torch._C._set_torch_function_state", FUNCTION, "they are off in a trace"),
    "is_torch_function_enabled": Name("torch._C._is_torch_function_enabled", FUNCTION, "a call that is modelled"),
    "has_torch_function": Name("torch._C._has_torch_function", FUNCTION, "a call that is modelled"),
    "has_torch_function_unary": Name("torch._C._has_torch_function_unary", FUNCTION, "a call that is modelled"),
    "has_torch_function_variadic": Name("torch._C._has_torch_function_variadic", FUNCTION, "a call that is modelled"),
    "disabled_torch_function": Name("torch._C._disabled_torch_function_impl", FUNCTION, "a class without overrides"),
    "disabled_torch_dispatch": Name("torch._C._disabled_torch_dispatch_impl", FUNCTION, "a class without overrides"),
    "default_tensor_device": Name(
        "torch._C._get_default_device",
        FUNCTION,
        "where torch.Tensor() makes tensors",
        public="torch.get_default_device",
    ),
    "make_wrapper": Name(
        "torch.Tensor._make_wrapper_subclass", FUNCTION, "tensors that hold others are made while tracing"
    ),
    "set_grad_enabled": Name(
        "torch._C._set_grad_enabled", FUNCTION, "the call that `no_grad` comes down to", public="torch.set_grad_enabled"
    ),
    "set_default_dtype": Name(
        "torch._C._set_default_dtype",
        FUNCTION,
        "the call that a change of the default dtype comes down to",
        public="torch.set_default_dtype",
    ),
    "print_options": Name(
        "torch._tensor_str.PRINT_OPTS",
        OBJECT,
        "how tensors are shown",
        has=("precision",),
        public="torch.set_printoptions",
    ),
    "set_deterministic_algorithms": Name(
        "torch._C._set_deterministic_algorithms",
        FUNCTION,
        "the call that a change of determinism comes down to",
        public="torch.use_deterministic_algorithms",
    ),
    "enter_inference_mode": Name(
        "torch.autograd.grad_mode._enter_inference_mode", FUNCTION, "inference mode in a graph", takes=1
    ),
    "exit_inference_mode": Name(
        "torch.autograd.grad_mode._exit_inference_mode", FUNCTION, "inference mode in a graph", takes=1
    ),
    "len_function_stack": Name("torch._C._len_torch_function_stack", FUNCTION, "the active TorchFunctionModes"),
    "function_mode_at": Name("torch._C._get_function_stack_at", FUNCTION, "one of them"),
    "push_function_mode": Name("torch._C._push_on_torch_function_stack", FUNCTION, "a call that is modelled", takes=1),
    "pop_function_mode": Name("torch._C._pop_torch_function_stack", FUNCTION, "a call that is modelled"),
    "is_function_mode_enabled": Name("torch._C._is_torch_function_mode_enabled", FUNCTION, "a call that is modelled"),
    "len_dispatch_stack": Name("torch._C._len_torch_dispatch_stack", FUNCTION, "the active TorchDispatchModes"),
    "dispatch_mode_at": Name("torch._C._get_dispatch_stack_at", FUNCTION, "one of them"),
    "dispatch_mode": Name("torch._C._get_dispatch_mode", FUNCTION, "one of torch's own"),
    "DispatchModeKey": Name(
        "torch._C._TorchDispatchModeKey", CLASS, "which of its own there are", has=("FAKE", "PROXY", "FUNCTIONAL")
    ),
    "EnablePythonDispatcher": Name(
        "torch._C._EnablePythonDispatcher", CLASS, "kernels that take symbolic sizes, as AOTAutograd uses them", takes=0
    ),
    "PreserveDispatchKeyGuard": Name(
        "torch._C._PreserveDispatchKeyGuard", CLASS, "how a thread dispatches is what it was before a backend failed"
    ),
    "disable_current_modes": Name(
        "torch.utils._python_dispatch._disable_current_modes", FUNCTION, "operations of the tracer's own", takes=0
    ),
    "innermost_transform": Name(
        "torch._C._functorch.peek_interpreter_stack", FUNCTION, "whether a transform of torch.func is at work"
    ),
    "are_transforms_active": Name(
        "torch._C._are_functorch_transforms_active", FUNCTION, "whether a transform of torch.func is at work"
    ),
    "suspend_saved_tensors_hooks": Name(
        "torch._C._autograd._saved_tensors_hooks_set_tracing", FUNCTION, "such hooks do not see the tracer's tensors"
    ),
    "top_saved_tensors_hooks": Name(
        "torch._C._autograd._top_saved_tensors_default_hooks", FUNCTION, "whether there is one"
    ),
    "push_saved_tensors_hooks": Name(
        "torch._C._autograd._push_saved_tensors_default_hooks", FUNCTION, "a call that is modelled"
    ),
    "pop_saved_tensors_hooks": Name(
        "torch._C._autograd._pop_saved_tensors_default_hooks", FUNCTION, "a call that is modelled"
    ),
    "why_no_saved_hooks": Name(
        "torch._C._autograd._saved_tensors_hooks_get_disabled_error_message",
        FUNCTION,
        "whether tensors that are saved may meet hooks: the error if not",
    ),
    "disable_saved_hooks": Name(
        "torch._C._autograd._saved_tensors_hooks_disable",
        FUNCTION,
        "a call that is modelled",
        public="autograd.graph.disable_saved_tensors_hooks",
    ),
    "enable_saved_hooks": Name("torch._C._autograd._saved_tensors_hooks_enable", FUNCTION, "a call that is modelled"),
    "tracing_state": Name("torch._C._get_tracing_state", FUNCTION, "whether torch.jit.trace is at work"),
    "unset_dispatch_mode": Name("torch._C._unset_dispatch_mode", FUNCTION, "what torch does without fake tensors"),
    "is_tracing": Name("torch._C._is_tracing", FUNCTION, "a call that is modelled", public="torch.jit.is_tracing"),
    "eval_frame_callback": Name(
        "torch._C._dynamo.eval_frame.get_eval_frame_callback", FUNCTION, "whether torch's own tracer has the thread"
    ),
    "tracing": Name("torch._guards.tracing", FUNCTION, "the context that AOTAutograd looks for", takes=1),
    "compile_context": Name("torch._guards.compile_context", FUNCTION, "what AOTAutograd looks for", takes=1),
}

_FUNCTIONS = {
    "conj": Name("torch._conj", FUNCTION, "a fake tensor with the conjugate bit", public="torch.conj"),
    "neg_view": Name("torch._neg_view", FUNCTION, "a fake tensor with the negative bit"),
    "shape_as_tensor": Name("torch._shape_as_tensor", FUNCTION, "a call that is modelled"),
    "pack_padded_sequence": Name(
        "torch._C._VariableFunctions._pack_padded_sequence", FUNCTION, "a call that is modelled"
    ),
    "pad_packed_sequence": Name(
        "torch._C._VariableFunctions._pad_packed_sequence", FUNCTION, "a call that is modelled"
    ),
    "nested_from_mask": Name("torch._nested_tensor_from_mask", FUNCTION, "a call that is modelled"),
    "left_aligned": Name("torch._nested_tensor_from_mask_left_aligned", FUNCTION, "a call that is modelled"),
    "encoder_layer": Name("torch._transformer_encoder_layer_fwd", FUNCTION, "a call that is modelled"),
    "make_quantized": Name("torch._make_per_tensor_quantized_tensor", FUNCTION, "a quantised tensor made of integers"),
    "make_quantized_by_channel": Name(
        "torch._make_per_channel_quantized_tensor", FUNCTION, "a quantised tensor made of integers"
    ),
    "dispatch_key": Name("torch._C.DispatchKey", CLASS, "autograd's, in the kernel of an operator of Stator's"),
    "dispatch_keys_of": Name("torch._C.DispatchKeySet", CLASS, "the same"),
    "excluded_keys": Name("torch._C._dispatch_tls_local_exclude_set", FUNCTION, "the same"),
    "included_keys": Name("torch._C._dispatch_tls_local_include_set", FUNCTION, "the same"),
    "force_dispatch_keys": Name("torch._C._ForceDispatchKeyGuard", CLASS, "the same"),
    "nested_tensor": Name("torch._C._nested.nested_tensor", FUNCTION, "a call that is modelled"),
    "nested_to_padded": Name("torch._C._nested.nested_to_padded_tensor", FUNCTION, "a call that is modelled"),
    "nested_of_list": Name("torch._nested_tensor_from_tensor_list", FUNCTION, "a nested tensor made of its rows"),
    "script_type": Name("torch._C.ScriptObject._type", FUNCTION, "what is packed into an object of C++"),
    "clone_all": Name("torch._foreach_clone", FUNCTION, "copies of what a graph writes, quickly"),
    "sym_sqrt": Name("torch._sym_sqrt", FUNCTION, "the root of a symbolic size", takes=1),
    "float_pow": Name("torch.SymFloat.__float_pow__", FUNCTION, "a power that assumes nothing of its base"),
    "reflected_float_pow": Name("torch.SymFloat.__rfloat_pow__", FUNCTION, "the same, of a base that is a number"),
    "assume": Name("torch._check", FUNCTION, "a bound of a symbolic size", takes=1),
    "assert_async": Name("torch._assert_async", FUNCTION, "a condition that a tensor holds"),
    "unsafe_view": Name(
        "torch.ops.aten._unsafe_view.default", FUNCTION, "how `reshape` has a copy's sizes", has=("_schema",)
    ),
    "number_of": Name(
        "torch.ops.aten._local_scalar_dense.default", FUNCTION, "what takes a number out of a tensor", has=("_schema",)
    ),
    "batch_norm_op": Name(
        "torch.ops.aten._native_batch_norm_legit.default",
        FUNCTION,
        "batch norm, as torch takes it apart",
        has=("_schema",),
    ),
    "batch_norm_alone_op": Name(
        "torch.ops.aten._native_batch_norm_legit.no_stats",
        FUNCTION,
        "the same without running statistics",
        has=("_schema",),
    ),
    "assert_async_op": Name("torch.ops.aten._assert_async", FUNCTION, "the same, as an operator", has=("default",)),
    "assert_async_msg": Name("torch.ops.aten._assert_async.msg", FUNCTION, "the same with a message", has=("_schema",)),
    "assert_scalar": Name(
        "torch.ops.aten._assert_scalar.default", FUNCTION, "a condition on a number in a tensor", has=("_schema",)
    ),
    "resize_storage": Name(
        "torch.ops.inductor.resize_storage_bytes_.default", FUNCTION, "the size of a storage", has=("_schema",)
    ),
    "is_all_true": Name("torch._is_all_true", FUNCTION, "a call that is modelled"),
    "is_any_true": Name("torch._is_any_true", FUNCTION, "a call that is modelled"),
    "infer_size": Name("torch._C._infer_size", FUNCTION, "a call that is modelled"),
    "NodeBase": Name(
        "torch._C._NodeBase", CLASS, "a node of torch.fx, as its C code sees it", has=("_next", "_prev", "_erased")
    ),
    "NodeIter": Name("torch._C._NodeIter", CLASS, "the iterator over a torch.fx graph, which is traced"),
    "fx_map_arg": Name("torch._C._fx_map_arg", FUNCTION, "a call that is traced, of torch.fx.Interpreter"),
    "fx_map_all": Name("torch._C._fx_map_aggregate", FUNCTION, "a call that is traced, of torch.fx.Interpreter"),
    "without_dynamo": Name("torch._disable_dynamo", FUNCTION, "functions that wear it are traced through", takes=1),
    "log_api_usage_once": Name("torch._C._log_api_usage_once", FUNCTION, "a call that is left out"),
    "privateuse1_name": Name("torch._C._get_privateuse1_backend_name", FUNCTION, "a call that is modelled"),
    "group_by_device_and_dtype": Name(
        "torch._C._group_tensors_by_device_and_dtype", FUNCTION, "a call of optimizers that is modelled"
    ),
    "has_effects": Name(
        "torch._higher_order_ops.effects.has_effects", FUNCTION, "whether an operator was said to have side effects"
    ),
    "has_kernel": Name(
        "torch._C._dispatch_has_kernel_for_dispatch_key", FUNCTION, "whether an operator runs without data"
    ),
    "overlapping_tensors": Name(
        "torch._C._dynamo.guards.compute_overlapping_tensors", FUNCTION, "AOTAutograd's assumption, as a guard"
    ),
    "FastRecord": Name(
        "torch._C._profiler._RecordFunctionFast",
        CLASS,
        "a label for profilers",
        has=("__enter__", "__exit__"),
        takes=None,
    ),
    "record_begins": Name(
        "torch.ops.profiler._record_function_enter_new",
        FUNCTION,
        "what torch.profiler.record_function calls",
        has=("_qualified_op_name",),
    ),
    "record_ends": Name(
        "torch.ops.profiler._record_function_exit._RecordFunction",
        FUNCTION,
        "what torch.profiler.record_function calls",
        has=("_schema",),
    ),
    "correct_aliasing": Name(
        "torch.utils._python_dispatch.return_and_correct_aliasing",
        FUNCTION,
        "what __torch_dispatch__ makes views with",
        takes=4,
    ),
    "reparametrized": Name(
        "torch.nn.utils.stateless._reparametrize_module",
        FUNCTION,
        "a module with other tensors",
        takes=2,
        public="torch.func.functional_call",
    ),
    "pytree": Name(
        "torch.utils._pytree",
        MODULE,
        "what is in a leaf function's arguments",
        has=("tree_leaves", "tree_flatten", "tree_unflatten", "tree_structure"),
    ),
    "broadcast_prefix": Name(
        "torch.utils._pytree._broadcast_to_and_flatten", FUNCTION, "which dimension of each argument vmap maps", takes=2
    ),
    "vmap_info": Name(
        "torch._functorch.autograd_function.VmapInfo",
        CLASS,
        "what the vmap of an autograd.Function is told",
        has=("batch_size", "randomness"),
    ),
    "vmap_impl": Name(
        "torch._functorch.vmap.vmap_impl",
        FUNCTION,
        "the whole of torch.vmap, which is modelled",
        takes=5,
        has=("__code__",),
        public="torch.vmap",
    ),
    "grad_and_value_impl": Name(
        "torch._functorch.eager_transforms.grad_and_value_impl",
        FUNCTION,
        "a transform that is left to Python",
        has=("__code__",),
    ),
    "vjp_impl": Name(
        "torch._functorch.eager_transforms._vjp_with_argnums",
        FUNCTION,
        "a transform that is left to Python",
        has=("__code__",),
    ),
    "jvp_impl": Name(
        "torch._functorch.eager_transforms._jvp_with_argnums",
        FUNCTION,
        "a transform that is left to Python",
        has=("__code__",),
    ),
    "module_call": Name(
        "torch.nn.Module._call_impl",
        FUNCTION,
        "the call of a module, which is modelled",
        takes=1,
        has=("__code__", "__globals__"),
    ),
    "module_wrapped_call": Name(
        "torch.nn.Module._wrapped_call_impl", FUNCTION, "the call of a module, which is modelled", takes=1
    ),
    "module_loading": Name(
        "torch.nn.Module._load_from_state_dict", FUNCTION, "overridden where a module's state is loaded", takes=8
    ),
    "generated_sources": Name(
        "torch.fx.graph_module._loader", OBJECT, "the source of a graph dies with it", has=("eval_cache",)
    ),
    "operators_with_fakes": Name(
        "torch._higher_order_ops.utils.registered_hop_fake_fns", OBJECT, "those that fake tensors know by themselves"
    ),
    "tell_log": Name("torch._logging.trace_structured", FUNCTION, "torch's log", takes=1, words=("payload_fn",)),
    "leaf_operator": Name(
        "torch._higher_order_ops.invoke_leaf_function.invoke_leaf_function", FUNCTION, "a leaf function in a graph"
    ),
    "fx_tracer": Name(
        "torch.fx._symbolic_trace",
        MODULE,
        "whether torch.fx is tracing",
        has=("Tracer",),
        public="torch.fx._symbolic_trace.is_fx_symbolic_tracing",
    ),
    "forward_ad": Name(
        "torch.autograd.forward_ad", MODULE, "the level of forward-mode differentiation", has=("_current_level",)
    ),
    "checkpointing": Name(
        "torch.utils.checkpoint", MODULE, "whether checkpoints are debugged", has=("_checkpoint_debug_enabled",)
    ),
    "DelayedError": Name(
        "torch._C._functions.DelayedError", CLASS, "a tensor whose history is used up raises where it is asked for"
    ),
    "FunctionBase": Name("torch._C._FunctionBase", CLASS, "the context that autograd calls `forward` with"),
    "Function": Name(
        "torch.autograd.Function", CLASS, "what the node of a Function is made of", has=("_backward_cls", "apply")
    ),
}

#: what torch does not load by itself
LATER = {
    "new_dtensor": Name("torch.Tensor._dtensor__new__", FUNCTION, "distributed tensors are made while tracing"),
    "from_torch_tensor": Name(
        "torch.distributed.tensor._api._FromTorchTensor",
        CLASS,
        "what a graph makes distributed tensors by",
        public="torch.distributed.tensor.DTensor.from_local",
    ),
    "tensor_dispatcher": Name(
        "torch.distributed.tensor.DTensor._op_dispatcher",
        OBJECT,
        "what handles operations on distributed tensors",
        has=("_custom_op_handlers", "_allow_implicit_replication"),
    ),
    **{
        f"{what}_parallel_losses": Name(
            f"torch.distributed.tensor.parallel.loss._{what}_custom_loss_ops",
            FUNCTION,
            "what `loss_parallel` does is done in a graph",
            public="torch.distributed.tensor.parallel.loss_parallel",
        )
        for what in ("enable", "disable")
    },
    "c10d": Name(
        "torch._C._distributed_c10d",
        MODULE,
        "process groups, and the options of their collectives",
        has=("AllreduceOptions", "Backend", "ProcessGroup", "Work"),
        public="torch.distributed",
    ),
    "group_of_name": Name("torch._C._distributed_c10d._resolve_process_group", FUNCTION, "groups by their names"),
    "default_store": Name(
        "torch.distributed.distributed_c10d._get_default_store", FUNCTION, "where ranks compare what they compile"
    ),
    "devices_of_group": Name(
        "torch._C._distributed_c10d.ProcessGroup._device_types", FIELD, "the kinds of devices of a group"
    ),
    "backend_of_group": Name(
        "torch._C._distributed_c10d.ProcessGroup._get_backend", FUNCTION, "what moves tensors on a kind of devices"
    ),
    "sequence_number": Name(
        "torch._C._distributed_c10d.ProcessGroup._get_sequence_number_for_group",
        FUNCTION,
        "how many collectives have been begun in a group",
    ),
    "world": Name(
        "torch.distributed.distributed_c10d._world", OBJECT, "the groups that this rank is in", has=("pg_names",)
    ),
    "ddp_forward": Name("torch.nn.parallel.DistributedDataParallel.forward", FUNCTION, "DDP around its module"),
    "ddp_run": Name("torch.nn.parallel.DistributedDataParallel._run_ddp_forward", FUNCTION, "DDP around its module"),
    "active_ddp": Name(
        "torch.nn.parallel.DistributedDataParallel._get_active_ddp_module", FUNCTION, "whose forward pass runs", takes=0
    ),
    "first_bucket": Name("torch.distributed._DEFAULT_FIRST_BUCKET_BYTES", OBJECT, "how much DDP sends first"),
    "ddp_inside": Name("torch.nn.parallel.DistributedDataParallel._inside_ddp_forward", FUNCTION, "one of DDP's steps"),
    "ddp_before": Name(
        "torch.nn.parallel.DistributedDataParallel._pre_forward", FUNCTION, "one of DDP's steps", has=("__code__",)
    ),
    "ddp_after": Name(
        "torch.nn.parallel.DistributedDataParallel._post_forward", FUNCTION, "one of DDP's steps", has=("__code__",)
    ),
    "operator_names": Name("torch._C._dispatch_get_all_op_names", FUNCTION, "which operators communicate"),
    "register_work": Name("torch._C._distributed_c10d._register_work", FUNCTION, "what waits for a collective of ours"),
    "collective_operators": Name(
        "torch.ops._c10d_functional", OBJECT, "collectives as operations of a graph", has=("all_reduce", "wait_tensor")
    ),
    "forget_placements": Name(
        "torch.distributed.tensor.debug._clear_sharding_prop_cache",
        FUNCTION,
        "what torch remembers of distributed tensors holds no stand-ins of a backend's",
    ),
    "functional_collectives": Name(
        "torch.distributed._functional_collectives", MODULE, "what these operators return", has=("wait_tensor",)
    ),
    "aot_function": Name(
        "torch._functorch.aot_autograd.aot_function", FUNCTION, "whether a backward pass can be traced", takes=2
    ),
    "triton_kernels": Name(
        "torch._higher_order_ops.triton_kernel_wrap",
        MODULE,
        "launches of Triton kernels as operations of a graph",
        has=("get_mutated_tensors", "kernel_side_table", "triton_kernel_wrapper_mutation"),
    ),
    "refs": Name("torch._refs", MODULE, "`torch.tensor` of what is known", has=("tensor",)),
    "numpy": Name("torch._numpy", MODULE, "NumPy's functions on tensors", has=("ndarray",)),
    "LocalSource": Name(
        "torch._dynamo.source.LocalSource", CLASS, "the origin of an input", words=("local_name",), has=("name",)
    ),
    "AttrSource": Name("torch._dynamo.source.AttrSource", CLASS, "the origin of a view's base", takes=2),
    "FloatTensorSource": Name("torch._dynamo.source.FloatTensorSource", CLASS, "the origin of a number", takes=1),
    "evaluated": Name(
        "torch.fx.experimental.symbolic_shapes.ShapeEnv._inner_evaluate_expr",
        FUNCTION,
        "what torch remembers of its answers about symbols is forgotten",
        has=("cache_clear",),
    ),
    "dynamic_spec": Name(
        "torch.fx.experimental.dynamic_spec",
        MODULE,
        "what a program says of the sizes of its inputs",
        has=("ShapesSpec", "ParamsSpec", "TensorSpec", "SeqSpec", "DictSpec", "ObjectSpec", "IntVar"),
    ),
    "symbol_kinds": Name(
        "torch.utils._sympy.symbol", MODULE, "what a symbol stands for", has=("SymT", "symbol_is_type")
    ),
    "symbol_settings": Name(
        "torch.fx.experimental._config", MODULE, "how torch reasons about symbols", has=("translation_validation",)
    ),
    "TensorifyState": Name(
        "torch._dynamo.symbolic_convert.TensorifyState", CLASS, "numbers that AOTAutograd must not make tensors of"
    ),
    "torchs_backends": Name(
        "torch._dynamo.backends.registry", MODULE, "backends of torch's own", has=("lookup_backend", "list_backends")
    ),
    "InvalidBackend": Name("torch._dynamo.exc.InvalidBackend", CLASS, "backends of torch's own"),
    "aot_eager": Name("torch._dynamo.backends.debugging.aot_eager", FUNCTION, "the backend `aot_eager`", takes=2),
    "aot_config": Name("torch._functorch.config", MODULE, "AOTAutograd's options", has=("cse",)),
    "compile_fx": Name(
        "torch._inductor.compile_fx.compile_fx", FUNCTION, "the backend `inductor`", takes=2, words=("config_patches",)
    ),
    "inductor_config": Name(
        "torch._inductor.config", MODULE, "its options", has=("get_config_copy", "post_grad_custom_post_pass")
    ),
    "CustomGraphPass": Name("torch._inductor.custom_graph_pass.CustomGraphPass", CLASS, "a pass over its graphs"),
    "hash_of_files": Name(
        "torch._inductor.custom_graph_pass.get_hash_for_files", FUNCTION, "its caches know the pass", takes=1
    ),
    "inductor_modes": Name("torch._inductor.list_mode_options", FUNCTION, "its modes", takes=0),
}

NAMES: dict[str, Name] = {**_OF_TENSORS, **_CLASSES, **_SCRIPTS, **_STATE, **_FUNCTIONS, **LATER}


# --- resolving and checking ----------------------------------------------------------------------------------------


def __getattr__(name: str) -> Any:
    """Resolve a name of the table when it is first used."""
    row = NAMES.get(name)
    if row is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found, difference = look_at(row)
    if difference:
        raise InternalError(_refusal([difference]))
    globals()[name] = value = found.__get__ if row.kind is FIELD else found
    return value


def differences(names: Iterator[Name] | None = None) -> list[str]:
    """How torch differs from what Stator needs: one line a name."""
    rows = NAMES.values() if names is None else names
    found = [difference for difference in (look_at(row)[1] for row in rows) if difference]
    return [*found, *_unlike()]


def _unlike() -> list[str]:
    """Differences that a row cannot tell."""
    lines = []
    nn = resolve("torch.nn")
    members, shared = vars(nn.Module()), getattr(nn.Module, "_call_impl", nn.Module.__call__).__globals__
    lines += [f"a torch.nn.Module has no {name} (models of modules)" for name in MODULE_FIELDS if name not in members]
    lines += [
        f"torch.nn.modules.module has no {name} (models of modules)" for name in GLOBAL_HOOKS if name not in shared
    ]
    fx = resolve("torch.fx")
    graph = fx.Graph()
    if not hasattr(graph, "_root"):
        lines.append("a torch.fx.Graph has no _root (where a trace has begun)")
    if not hasattr(graph.python_code("self"), "_lineno_map"):
        lines.append("torch.fx keeps no _lineno_map of a graph's code (which operation has failed)")
    tracer = resolve("torch.fx._symbolic_trace")
    if not hasattr(tracer, "_is_fx_tracing_flag") and not hasattr(tracer, "_is_fx_tracing_tls"):
        lines.append(
            "torch.fx._symbolic_trace has neither _is_fx_tracing_flag nor _is_fx_tracing_tls (torch.fx traces)"
        )
    return lines


def check() -> None:
    """Refuse a torch that does not fit: called before anything is registered.

    Raises:
        InternalError: it is too old, or differs; the message says in what, and what to install.
    """
    fits, words = verdict(row for name, row in NAMES.items() if name not in LATER)
    if not fits:
        raise InternalError(words)
    if words:
        warnings.warn(words, stacklevel=2)


def verdict(names: Iterator[Name] | None = None) -> tuple[bool, str]:
    """Whether this torch fits, and what there is to say of it; all names are looked at unless some are given."""
    import torch

    version = _version(torch.__version__)
    if version is not None and version < TESTED[0]:
        return False, f"torch {torch.__version__} is too old for Stator, which needs 2.13 to 2.15: {INSTALL}"
    found = differences(names)
    if found:
        return False, _refusal(found)
    if version is None or version > TESTED[1]:
        new = f"torch {torch.__version__} is newer than those that Stator is tested with (2.13 to 2.15)"
        return True, f"{new}. What Stator needs of its internals is there, so it is tried."
    return True, ""


def _version(text: str) -> tuple[int, int] | None:
    numbers = re.match(r"(\d+)\.(\d+)", text)
    return None if numbers is None else (int(numbers[1]), int(numbers[2]))


def is_at_least(*version: int) -> bool:
    """Whether torch is of a version or a later one, where no name tells what it can do."""
    found = _version(sys.modules["torch"].__version__)
    return found is None or found >= version


def _refusal(found: list[str]) -> str:
    version = getattr(sys.modules.get("torch"), "__version__", "?")
    lines = [f"Stator does not fit torch {version}. What it needs of torch's internals is otherwise there:"]
    return "\n".join([*lines, *(f"  {line}" for line in found), f"Install a torch that it fits: {INSTALL}"])


# --- what is no object but a variable of torch's, or an attribute of objects of a class it makes ----------------------

#: where a module keeps what is not in its `__dict__`, in the order in which `__getattr__` looks
MODULE_MEMBERS = ("_parameters", "_buffers", "_modules")
MODULE_TENSORS = ("_parameters", "_buffers")
MODULE_HOOKS = ("_backward_hooks", "_backward_pre_hooks", "_forward_hooks", "_forward_pre_hooks")
MODULE_FIELDS = (*MODULE_MEMBERS, *MODULE_HOOKS)
#: where a ShapesSpec keeps what is said of parameters; and a ParamsSpec what is said of named ones, and of the others
SAID_OF_ALL = "_params"
SAID_OF_PARAMETERS = ("_named_args", "_varargs", "_varkw")
#: hooks on all modules: variables of the module in which `Module._call_impl` is written
GLOBAL_HOOKS = (
    "_global_backward_pre_hooks",
    "_global_backward_hooks",
    "_global_forward_hooks",
    "_global_forward_pre_hooks",
)


def is_fx_tracing() -> bool:
    """Whether torch.fx is tracing on this thread: up to 2.13 on any."""
    namespace, name = symbolic_flag()
    return bool((namespace if isinstance(namespace, dict) else vars(namespace)).get(name))


def symbolic_flag() -> tuple[Any, str]:
    """Where that is written: a namespace of the process, or (since 2.14) one of each thread, and the name in it."""
    tracer: Any = sys.modules["torch.fx._symbolic_trace"]
    if hasattr(tracer, "_is_fx_tracing_flag"):
        return vars(tracer), "_is_fx_tracing_flag"
    return tracer._is_fx_tracing_tls, "flag"


def forward_level() -> int:
    """The innermost level of forward-mode differentiation; negative where there is none."""
    namespace, name, _ = forward_level_name()
    return int(namespace[name])


def forward_level_name() -> tuple[dict[str, Any], str, str]:
    """Where the level of forward-mode differentiation is written: a namespace, the name in it, its module's name."""
    module: Any = sys.modules["torch.autograd.forward_ad"]
    return vars(module), "_current_level", module.__name__


def checkpoints_are_debugged() -> bool:
    """Whether `set_checkpoint_debug_enabled` has been told so."""
    module: Any = sys.modules["torch.utils.checkpoint"]
    return bool(module._checkpoint_debug_enabled)


def checkpoint_impl() -> Any:
    """What runs a function that `checkpoint(…)` has decorated; None up to torch 2.13, which knows no such decorator."""
    module: Any = sys.modules["torch.utils.checkpoint"]
    return getattr(module, "_checkpoint_impl", None)


def distributed_tensor() -> Any:
    """The class of distributed tensors; None as long as nobody has imported it."""
    return getattr(sys.modules.get("torch.distributed.tensor"), "DTensor", None)


def tensor_handlers(dispatcher: Any) -> dict[Any, Any]:
    """The table of functions that handle some operations on distributed tensors."""
    handlers: dict[Any, Any] = dispatcher._custom_op_handlers
    return handlers


def replicates_implicitly(dispatcher: Any) -> bool:
    """Whether plain tensors may be operands beside distributed ones."""
    return bool(dispatcher._allow_implicit_replication)


def loss_handlers() -> dict[Any, Any]:
    """The functions that `loss_parallel` puts into that table; none as long as nobody has imported it."""
    found: dict[Any, Any] = getattr(
        sys.modules.get("torch.distributed.tensor.parallel.loss"), "customized_loss_ops", {}
    )
    return found


def compile_lock() -> Any:
    """What torch's tracer holds while it compiles; None where the tracer is not loaded."""
    return getattr(sys.modules.get("torch._dynamo.convert_frame"), "compile_lock", None)


#: where an autograd Function has the class of the nodes that it puts into autograd's graph
BACKWARD_CLASS = "_backward_cls"


def schema(operator: Any) -> Any:
    """What an operator takes, gives and writes."""
    return operator._schema


def qualified_name(packet: Any) -> str:
    """The name of an operator, whichever of its overloads."""
    return str(packet._qualified_op_name)


def root(graph: Any) -> Any:
    """The node before the first, and after the last, of a graph of torch.fx."""
    return graph._root


def node_on_line(module: Any, line: int) -> int | None:
    """Which node of a graph module's graph is on a line of its code, counted from the first."""
    index: int | None = module._lineno_map.get(line)
    return index


def begin_origins(module: Any) -> None:
    """AOTAutograd asks a graph module for the origins of parameters that are no inputs; there are none."""
    module._param_name_to_source = {}


#: where AOTAutograd looks for it on the node of an input
ORIGIN = "_dynamo_source"


def note_origin(node: Any, source: Any) -> None:
    """Tell AOTAutograd where an input comes from."""
    setattr(node, ORIGIN, source)


def operator_spaces() -> list[Any]:
    """What holds torch's operators as C functions, for each part of torch that this one has."""
    import torch

    parts = ("_VariableFunctions", "_nn", "_linalg", "_fft", "_special", "_sparse", "_nested")
    return [space for space in (getattr(torch._C, part, None) for part in parts) if space is not None]


def c_functions(names: tuple[str, ...]) -> list[Any]:
    """Those of the named C functions that this torch has: of one that it has not, no call is met."""
    import torch

    hosts = [getattr(torch, name, None) or getattr(torch._C, name, None) for name in names]
    return [host for host in hosts if host is not None]


def submodules(module: Any) -> dict[str, Any]:
    """The parts of a module, by name."""
    found: dict[str, Any] = module._modules
    return found


def layer_versions(state_dict: Any) -> dict[str, Any] | None:
    """The versions of the layers that a checkpoint is of, by path; None where it has none."""
    found: dict[str, Any] | None = getattr(state_dict, "_metadata", None)
    return found


def set_layer_versions(state_dict: Any, versions: dict[str, Any]) -> None:
    """Give a checkpoint the versions of its layers."""
    state_dict._metadata = versions
