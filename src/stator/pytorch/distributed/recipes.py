"""What collectives come down to: torch's functional operators, and the tensors that their results are written to.

    work = group.allreduce([tensor], options)     # begins; C++ writes to the tensor while the program goes on
    work.wait()

is traced as `made = all_reduce(tensor, "sum", "0")`, and `tensor.data.copy_(wait_tensor(made))` where the program
waits. There is a function here for each method of ProcessGroup that has a functional operator which sends the same
messages: a rank that runs the graph then meets one that runs as ordinary Python. These functions are traced in the
method's place. Each gives a list of (result of the operator, tensors to write it to).

What autograd learns of a collective is what its C++ operator tells it: nothing, of those that return a Work alone or
are given lists of lists. They write behind its back, and so do the functions here, by `tensor.data`. Of others, what
autograd records depends on the backend: they are left to Python where a tensor has gradients.
"""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["METHODS", "arrived", "backend", "complete", "leave", "operate", "recv", "reduction", "send", "sent"]


def operate(name: str, *args: Any) -> Any:
    """The functional operator of this name. The trace has a model of it, as of the next three."""
    raise NotImplementedError(name)


def reduction(options: Any) -> str:
    """The name of the reduction that the options ask for."""
    raise NotImplementedError(options)


def backend(group: Any, device: str) -> Any:
    """The name of the backend for tensors on such a device; None if there is none."""
    raise NotImplementedError(group, device)


def leave(why: str) -> None:
    """The collective is left to Python."""
    raise NotImplementedError(why)


def allreduce(group: Any, tensors: Any, options: Any) -> Any:
    data = _only(tensors).data
    return [(operate("all_reduce", data, reduction(options), group.group_name), [data])]


def broadcast(group: Any, tensors: Any, options: Any) -> Any:
    data = _only(tensors).data
    return [(operate("broadcast", data, options.rootRank, group.group_name), [data])]


def reduce(group: Any, tensors: Any, options: Any) -> Any:
    data = _only(tensors).data
    return [(operate("reduce", data, reduction(options), options.rootRank, group.group_name), [data])]


def scatter(group: Any, outputs: Any, inputs: Any, options: Any) -> Any:
    data = _only(outputs).data
    tensors = [tensor.detach() for tensor in _only_list(inputs)] if inputs else []
    _check_parts(group, tensors or [data] * group.size(), data)
    return [(operate("scatter", tensors, data, options.rootRank, group.group_name), [data])]


def allreduce_coalesced(group: Any, tensors: Any, options: Any) -> Any:
    _check(tensors, [])
    made = operate("all_reduce_coalesced", tensors, reduction(options), group.group_name)
    return _each(made, tensors)


def allgather(group: Any, outputs: Any, inputs: Any, options: Any) -> Any:
    targets, tensor = _only_list(outputs), _only(inputs).detach()
    _check_parts(group, targets, tensor)
    _check_gathering(group, tensor)
    row = tensor if tensor.dim() else tensor.view(1)
    return [(operate("all_gather_into_tensor", row, group.size(), group.group_name), targets)]


def gather(group: Any, outputs: Any, inputs: Any, options: Any) -> Any:
    tensor, here = _only(inputs).detach(), group.rank() == options.rootRank
    targets = _only_list(outputs) if here else []
    _check_parts(group, targets if here else [tensor] * group.size(), tensor)
    made = operate("gather", tensor, group.size(), options.rootRank, group.group_name)
    return _each(made, targets) if here else [(made[0], [])]


def all_gather_single(group: Any, output: Any, tensor: Any, options: Any) -> Any:
    _check_multiple(group, output, tensor)
    _check_gathering(group, tensor)
    return [(operate("all_gather_into_tensor", tensor, group.size(), group.group_name), [output])]


def all_gather_single_coalesced(group: Any, outputs: Any, inputs: Any, options: Any) -> Any:
    for output, tensor in zip(outputs, inputs, strict=True):
        _check_multiple(group, output, tensor)
        _check_gathering(group, tensor)
    return _each(operate("all_gather_into_tensor_coalesced", inputs, group.size(), group.group_name), outputs)


def reduce_scatter(group: Any, outputs: Any, inputs: Any, options: Any) -> Any:
    output, tensors = _only(outputs), _only_list(inputs)
    _check_parts(group, tensors, output)
    return [(operate("reduce_scatter", tensors, reduction(options), group.group_name), [output])]


def reduce_scatter_single(group: Any, output: Any, tensor: Any, options: Any) -> Any:
    _check_multiple(group, tensor, output)
    made = operate("reduce_scatter_tensor", tensor, reduction(options), group.size(), group.group_name)
    return [(made, [output])]


def reduce_scatter_single_coalesced(group: Any, outputs: Any, inputs: Any, options: Any) -> Any:
    for output, tensor in zip(outputs, inputs, strict=True):
        _check_multiple(group, tensor, output)
    size, name = group.size(), group.group_name
    return _each(operate("reduce_scatter_tensor_coalesced", inputs, reduction(options), size, name), outputs)


def all_to_all_single(group: Any, output: Any, tensor: Any, output_sizes: Any, input_sizes: Any, options: Any) -> Any:
    output, tensor = output.data, tensor.detach()
    _check([output], [tensor])
    if output.shape[1:] != tensor.shape[1:] or output.dim() == 0:
        leave("the rows that are sent are not like those that are received")
    received, sent = _splits(group, output, output_sizes), _splits(group, tensor, input_sizes)
    return [(operate("all_to_all_single", tensor, received, sent, group.group_name), [output])]


def alltoall(group: Any, outputs: Any, inputs: Any, options: Any) -> Any:
    _check(outputs, inputs)
    if len(outputs) != group.size() or len(inputs) != group.size():
        leave("the tensors are not as many as the ranks")
    tensor = torch.cat([tensor.view(-1) for tensor in inputs])
    sizes = [[tensor.numel() for tensor in tensors] for tensors in (outputs, inputs)]
    return [(operate("all_to_all_single", tensor, sizes[0], sizes[1], group.group_name), outputs)]


def send(group: Any, tensors: Any, peer: Any, tag: Any, after: Any) -> Any:
    data = _message(group, tensors)
    return operate("send", data, after, peer, tag, group.group_name), data


def recv(group: Any, tensors: Any, peer: Any, tag: Any, after: Any) -> Any:
    """What arrives, and where it is to be written."""
    data = _message(group, tensors)
    return operate("recv", data, after, peer, tag, group.group_name), data


#: method of ProcessGroup → what is traced in its place; those that an older torch has under another name follow
METHODS = {
    function.__name__: function
    for function in (
        *(allgather, allreduce, allreduce_coalesced, alltoall, all_gather_single, all_gather_single_coalesced),
        *(all_to_all_single, broadcast, gather, reduce, reduce_scatter, reduce_scatter_single),
        *(reduce_scatter_single_coalesced, scatter),
    )
}
METHODS |= {
    "_allgather_base": all_gather_single,
    "_reduce_scatter_base": reduce_scatter_single,
    "allgather_into_tensor_coalesced": all_gather_single_coalesced,
    "alltoall_base": all_to_all_single,
    "reduce_scatter_tensor_coalesced": reduce_scatter_single_coalesced,
}


def unknown(tensor: Any) -> Any:
    """A copy whose contents fake tensors do not know.

    Of a tensor with one element that the program has made of a number they do, and would run a collective for real.
    """
    return torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device).copy_(tensor)


def complete(writes: Any) -> None:
    """Wait for the results, and write them."""
    for made, targets in writes:
        waited = operate("wait_tensor", made)
        parts = (
            [waited][: len(targets)]
            if len(targets) < 2
            else waited.view(-1).split([target.numel() for target in targets])
        )
        for target, part in zip(targets, parts, strict=True):
            target.copy_(part if part.shape == target.shape else part.view(target.shape))


def sent(begun: Any, target: Any, after: Any) -> Any:
    """Wait until a message has left."""
    return operate("sent", begun, after)


def arrived(begun: Any, target: Any, after: Any) -> Any:
    """Wait for a message, and write it."""
    made = operate("arrived", begun, after)
    target.copy_(made)
    return made


def _only(tensors: Any) -> Any:
    """The one tensor of a list: several are for several devices of one process."""
    if type(tensors) is not list or len(tensors) != 1:
        leave("it is given several tensors")
    _check_dense(tensors)
    return tensors[0]


def _only_list(lists: Any) -> Any:
    if type(lists) is not list or len(lists) != 1:
        leave("it is given several lists")
    return lists[0]


def _check_dense(tensors: Any) -> None:
    if any(tensor.layout is not torch.strided or not tensor.is_contiguous() for tensor in tensors):
        leave("a tensor is not contiguous")  # eager has the words for what a backend does not take


def _check(outputs: Any, inputs: Any) -> None:
    """Tensors of one kind, of which autograd knows nothing."""
    tensors = [*outputs, *inputs]
    _check_dense(tensors)
    if any(tensor.dtype is not tensors[0].dtype or tensor.device != tensors[0].device for tensor in tensors):
        leave("the tensors are of several types")
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        leave("what autograd records of it depends on the backend")


def _check_parts(group: Any, parts: Any, tensor: Any) -> None:
    """There is a tensor of the same sizes for each rank."""
    _check(parts, [tensor])
    if len(parts) != group.size() or any(part.shape != tensor.shape for part in parts):
        leave("the tensors of the ranks are not as many as these, or of other sizes")


def _check_multiple(group: Any, large: Any, small: Any) -> None:
    """One tensor has the rows that the other has, for each rank."""
    _check([large], [small])
    if small.dim() == 0 or large.shape != (small.shape[0] * group.size(), *small.shape[1:]):
        leave("the one tensor is not made of rows of the other for each rank")


def _check_gathering(group: Any, tensor: Any) -> None:
    """Functional operators gather by a method of gloo's that takes the memory of other devices for the CPU's.

    https://github.com/pytorch/pytorch/issues/152645: the process crashes.
    """
    if tensor.device.type != "cpu" and backend(group, tensor.device.type) == "gloo":
        leave("gloo gathers tensors on the CPU only by it")


def _message(group: Any, tensors: Any) -> Any:
    """The memory of what is sent or received."""
    data = _only(tensors).data
    if backend(group, data.device.type) != "gloo":
        leave("messages of gloo alone are operations of a graph")
    return data


def _each(made: Any, targets: Any) -> Any:
    return [(result, [target]) for result, target in zip(made, targets, strict=True)]


def _splits(group: Any, tensor: Any, sizes: Any) -> Any:
    """How many rows there are of each rank, or for each."""
    rows = tensor.shape[0]
    if len(sizes) == 0 and rows % group.size() == 0:
        return [rows // group.size()] * group.size()
    if len(sizes) != group.size() or sum(sizes) != rows:
        leave("the sizes do not add up")
    return sizes
