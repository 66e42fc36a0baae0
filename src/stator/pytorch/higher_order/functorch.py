"""Transforms of torch.func that differentiate: grad, vjp, jvp, linearize, and what torch builds on them.

The function is traced once, into a graph of its own, and each application of the transform is one node: a module that
applies it to the graph (`transformed.py`). jacrev, jacfwd and hessian are Python of torch's over these and vmap.

    out, pull = torch.func.vjp(f, x)         # out = vjp_0(x, *captured)
    pull(ct)                                 # vjp_1(x, *captured, ct)

`pull` exists in the trace only. It runs the function again, which a backend that sees both nodes needn't.
"""

from __future__ import annotations

import functools
import os
from types import BuiltinFunctionType
from typing import TYPE_CHECKING

import torch

from stator import errors
from stator.interp import policy
from stator.pytorch import internals
from stator.pytorch.graph.subgraph import record_module
from stator.pytorch.higher_order.body import Body, breaks_of, flatten, recorded, refusal, unflatten, whole
from stator.pytorch.higher_order.transformed import Derivatives, Pulled, Pushed, Transformed
from stator.pytorch.state.global_state import grad_mode
from stator.pytorch.state.saved_hooks import SavedHooks
from stator.pytorch.tensors.tensor import TensorValue
from stator.pytorch.whole_calls import traced_or_whole
from stator.space.protocol import FALSE, INTERCEPTS, NONE, Handler, register
from stator.space.value import NotKnown, Unsupported, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import CodeType

    from stator.pytorch.types import Function, Host
    from stator.space.interfaces import Writer
    from stator.space.space import Space


class Differentiated:
    """A function that is traced at `primals`, to be differentiated with respect to the arguments `argnums` say.

    Args:
        argnums: None for all arguments.
        marked: the arguments differentiated by require gradients inside: not in forward mode.
    """

    def __init__(self, space: Space, name: str, argnums: Value, *, marked: bool = True) -> None:
        self.space = space
        self.name = name
        self.marked = marked
        self.argnums = space.known(argnums.force())
        self.body = Body(space, name)
        #: the tensors that it is differentiated by, and others that the function is given
        self.primals: list[TensorValue] = []
        self.others: list[TensorValue] = []
        #: the structure of what it is differentiated by, and of the tuple of that: the same unless `argnums` is an int
        self.spec: Value
        self.all_spec: Value
        self.aux: Value | None = None

    def trace(self, function: Value, args: list[Value], kwargs: dict[str, Value], has_aux: Value) -> None:
        """Trace a call of the function."""
        hooks = self.space.trace.extension(SavedHooks)
        if self.marked and hooks.inside("checkpoint"):
            raise refusal(self.name, "it is called in a checkpoint, and runs with no hooks on saved tensors")
        chosen = self.chosen(len(args))
        inner: dict[int, Value] = {}
        # The graph's first inputs are the primals: so these are made first.
        for i in [*chosen, *(i for i in range(len(args)) if i not in chosen)]:
            leaves, spec = flatten(self.space, args[i])
            inner[i] = unflatten(self.space, [self.example(leaf, i in chosen) for leaf in leaves], spec)
        parts = self.space.new_tuple([args[i] for i in chosen])
        self.all_spec = flatten(self.space, parts)[1]
        self.spec = flatten(self.space, args[chosen[0]])[1] if isinstance(self.argnums, int) else self.all_spec
        inside = hooks.entered("transform" if self.marked else "forward mode")
        with inside, grad_mode(self.body.recorder.state.switch, True):
            self.body.trace(function, [inner[i] for i in range(len(args))], kwargs, once=True)
        if self.space.known(has_aux.force()) is not False:
            self.split_aux()

    def chosen(self, count: int) -> list[int]:
        """The positions of the arguments that it is differentiated by."""
        if self.argnums is None:
            return list(range(count))
        numbers = self.argnums if isinstance(self.argnums, tuple) else (self.argnums,)
        if not all(type(n) is int and -count <= n < count for n in numbers) or not numbers:
            raise refusal(self.name, "it is differentiated by an argument that it is not given")
        found = [n % count for n in numbers]
        if len(set(found)) < len(found):
            raise refusal(self.name, "it is differentiated by an argument twice")
        return found

    def example(self, leaf: Value, chosen: bool) -> Value:
        """What the function is given for a leaf of an argument."""
        if not isinstance(leaf, TensorValue):
            if chosen:
                raise refusal(self.name, f"it is differentiated by {leaf.describe()}, which is no tensor")
            return leaf
        (self.primals if chosen else self.others).append(leaf)
        with self.body.recorder.fakes.executor.mode, torch.no_grad():
            like = leaf.fake.detach()
        return self.body.graph.example(like.requires_grad_() if chosen and self.marked else like)

    def split_aux(self) -> None:
        """The function gives a pair, of which the second part is not differentiated."""
        body = self.body
        result = unflatten(self.space, body.leaves, body.spec).force()
        if not issubclass(result.cls, tuple) or len(self.space.unpack(result)) != 2:
            raise refusal(self.name, "has_aux is set, and the function gives no pair")
        main, self.aux = self.space.unpack(result)
        body.leaves, body.spec = flatten(self.space, main)

    def finish(self) -> None:
        """Close the graph: its results are those that are differentiated, and those that are not."""
        body, space = self.body, self.space
        leaves, self.aux_spec = ([], NONE) if self.aux is None else flatten(space, self.aux)
        self.outputs = list(body.leaves)
        self.rest = leaves
        results = [*self.outputs, *self.rest]
        if not all(isinstance(leaf, TensorValue) for leaf in results):
            raise refusal(self.name, "the function gives something else than tensors")
        self.free = body.graph.free(results)
        self.graph = body.graph.close(results, self.free)

    def record(
        self, name: str, kind: Callable[..., Transformed], *options: object, more: Sequence[Value] = ()
    ) -> list[Value]:
        """Record the node that applies a transform; what it gives."""
        count = len(self.primals)
        module = kind(self.graph, count, len(self.outputs), *options)
        operands = [*self.primals, *self.others, *self.free, *more]
        recorder = self.space.trace.recorder
        return recorded(self.space, self.name, lambda: record_module(recorder, name, module, operands))

    def runs_again(self, results: Sequence[Value]) -> None:
        """Another node runs the function, and fails where the one of these results does, which nobody need read."""
        fallible = self.body.recorder.effects.fallible
        for result in results:
            fallible.pop(result.operation.node, None)  # type: ignore[attr-defined]

    def arranged(self, leaves: Sequence[Value]) -> Value:
        """Values for each of the results, in the structure of what the function gives."""
        return unflatten(self.space, leaves, self.body.spec)

    def answer(self, *parts: Value, rest: Sequence[Value]) -> Value:
        """The tuple of these parts, and of what is not differentiated, if there is any."""
        if self.aux is None:
            return self.space.new_tuple(list(parts))
        return self.space.new_tuple([*parts, unflatten(self.space, rest, self.aux_spec)])


class LinearMap(Value):
    """What the function does that vjp and linearize give besides the result: it exists in the trace only."""

    __slots__ = ("apply", "name")

    def __init__(self, name: str, apply: Callable[[list[Value]], Value]) -> None:
        self.cls = BuiltinFunctionType
        self.source = None
        self.name = name
        self.apply = apply

    def as_function(self, space: Space, like: Function) -> Value:
        """The function: a traced one, with all that functions have."""
        return space.call(space.existing(like), [self], {})

    def call(self, space: Space, args: list[Value], kwargs: dict[str, Value], in_tail_position: bool) -> Value:
        return self.apply(args)

    def describe(self) -> str:
        return f"the function that {self.name} gives"

    def reconstruct(self, writer: Writer) -> str:
        raise Unsupported(errors.NotReconstructible(self.describe()))


def _pulling(apply: Function) -> Function:
    """Python that is traced: the function that vjp gives, with the parameters of torch's."""

    def wrapper(cotangents: object, retain_graph: bool = True, create_graph: bool | None = None) -> object:
        return apply(cotangents, retain_graph, torch.is_grad_enabled() if create_graph is None else create_graph)

    return wrapper


def _pushing(apply: Function) -> Function:
    """Python that is traced: the function that linearize gives."""

    def jvp_fn(*tangents: object) -> object:
        return apply(*tangents)

    return jvp_fn


# -- the transforms ---------------------------------------------------------------------------------------------------


def _grad_and_value(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`grad_and_value_impl(func, argnums, has_aux, args, kwargs)`."""
    function, argnums, has_aux, given, named = args
    name = "torch.func.grad"
    with whole(internals.grad_and_value_impl, name):
        f = Differentiated(space, name, argnums)
        f.trace(function.force(), space.unpack(given), named.force().str_items(space), has_aux)  # type: ignore[attr-defined]
        f.finish()
        value = f.outputs[0]
        if len(f.outputs) != 1 or len(value.shape) != 0 or f.arranged(f.outputs).force() is not value:  # type: ignore[attr-defined]
            raise refusal(name, "the function gives no single number")
        made = f.record("grad", Derivatives)
        count = len(f.primals)
        gradients = unflatten(space, made[:count], f.spec)
        if f.aux is None:
            return space.new_tuple([gradients, made[count]])
        return space.new_tuple([gradients, f.answer(made[count], rest=made[count + 1 :])])


def _vjp(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`_vjp_with_argnums(func, *primals, argnums=None, has_aux=False)`."""
    name = "torch.func.vjp"
    with whole(internals.vjp_impl, name):
        f = Differentiated(space, name, kwargs.get("argnums", NONE))
        f.trace(args[0].force(), args[1:], {}, kwargs.get("has_aux", FALSE))
        f.finish()
        made = f.record("vjp", Pulled)
        count = len(f.outputs)

    spent = False

    def pull(args: list[Value]) -> Value:
        nonlocal spent
        cotangents, *options = args
        retain_graph, create_graph = [space.truth(option) for option in options]
        with whole(internals.vjp_impl, name):
            if spent:
                raise refusal(name, "the function that it gives is called again after retain_graph=False")
            spent = not retain_graph
            more = _like(space, name, cotangents, f.body.spec)
            with grad_mode(f.body.recorder.state.change, create_graph):
                pulled = f.record("vjp", Pulled, more=more)
            f.runs_again(made)
            return unflatten(space, pulled, f.spec)

    function = LinearMap(name, pull).as_function(space, _pulling)
    return f.answer(f.arranged(made[:count]), function, rest=made[count:])


def _like(space: Space, name: str, given: Value, spec: Value) -> list[Value]:
    """The leaves of cotangents or tangents, which must be arranged as what they belong to."""
    leaves, own = flatten(space, given)
    if not space.truth(space.compare("==", own, spec)):
        raise refusal(name, "cotangents or tangents have another structure than what they belong to")
    if not all(isinstance(leaf, TensorValue) for leaf in leaves):
        raise refusal(name, "cotangents or tangents are no tensors")
    return leaves


def _jvp(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`_jvp_with_argnums(func, primals, tangents, argnums, *, strict=False, has_aux)`."""
    named = dict(zip(("func", "primals", "tangents", "argnums"), args, strict=False)) | kwargs
    name = "torch.func.jvp"
    strict = space.known(named.get("strict", FALSE).force())
    if strict is NotKnown:
        raise refusal(name, "its options are not known")
    with whole(internals.jvp_impl, name):
        f = Differentiated(space, name, named["argnums"], marked=False)
        f.trace(named["func"].force(), space.unpack(named["primals"]), {}, named.get("has_aux", FALSE))
        f.finish()
        made = f.record("jvp", Pushed, strict, more=_like(space, name, named["tangents"], f.all_spec))
        count = len(f.outputs)
        return f.answer(f.arranged(made[:count]), f.arranged(made[count : 2 * count]), rest=made[2 * count :])


def _linearize(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`linearize(func, *primals)`."""
    name = "torch.func.linearize"
    with whole(torch.func.linearize, name):
        f = Differentiated(space, name, NONE, marked=False)
        f.trace(args[0].force(), args[1:], {}, FALSE)
        f.finish()
        made = f.record("vjp", Pulled)

    def push(tangents: list[Value]) -> Value:
        with whole(torch.func.linearize, name):
            more = _like(space, name, space.new_tuple(tangents), f.spec)
            pushed = f.record("jvp", Pushed, False, more=more)
            f.runs_again(made)
            return f.arranged(pushed[len(f.outputs) :])

    return space.new_tuple([f.arranged(made), LinearMap(name, push).as_function(space, _pushing)])


def _functionalize(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`functionalize(func, *, remove="mutations")`: a function that gives and does what `func` does."""
    if len(args) != 1 or space.known(kwargs.get("remove", NONE).force()) not in (
        None,
        "mutations",
        "mutations_and_views",
    ):
        return None
    return space.call(space.existing(_same), args, {})


def _same(func: Function) -> Function:
    """Python that is traced."""

    @functools.wraps(func)
    def wrapped(*args: object, **kwargs: object) -> object:
        return func(*args, **kwargs)

    return wrapped


# -- the calls --------------------------------------------------------------------------------------------------------

_FOLDER = os.path.join(os.path.dirname(torch.__file__), "_functorch", "")
#: the transforms, and the functions that they give: a call that is not traced runs as in eager with all that is inside
_FILES = frozenset(_FOLDER + name for name in ("apis.py", "eager_transforms.py", "vmap.py"))


def _belongs(code: CodeType) -> bool:
    return code.co_filename in _FILES


def _intercept(host: Host) -> Handler | None:
    """How a transform, or a function that one has given, is handled (see protocol.INTERCEPTS)."""
    if not _belongs(host.__code__):
        return None
    transform = host.__code__.co_qualname.partition(".")[0].strip("_").removesuffix("_with_argnums")
    rename = breaks_of(f"torch.func.{transform}")

    def breaks(met: errors.Break) -> errors.Break:
        return met if isinstance(met, errors.HigherOrderOperatorCall) else rename(met)

    return traced_or_whole(host, breaks, _belongs)


def install() -> None:
    """Register the models."""
    models: list[tuple[Function, Callable[..., Value | None]]] = [
        (internals.grad_and_value_impl, _grad_and_value),
        (internals.vjp_impl, _vjp),
        (internals.jvp_impl, _jvp),
        (torch.func.linearize, _linearize),
        (torch.func.functionalize, _functionalize),
    ]
    for host, model in models:
        register(host, model)
    INTERCEPTS.append(_intercept)
    policy.WHOLE.append(_belongs)
