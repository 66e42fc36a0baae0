"""Every readable attribute and every method without arguments, for pairs of tensors that differ in one fact alone.

A program that answers for one tensor is called with the other: its answer must be the other's, whether by a guard, by
a break, or because the graph computes it. `STATOR_FACTS=all` tries all names. Otherwise those are tried that tell about
tensors rather than compute with them, and for each fact another sixteenth of the others; of all these the ones whose
answers differ, and of operations on other data only a few.
"""

from __future__ import annotations

import os
import random
import warnings
from collections import OrderedDict
from types import SimpleNamespace

import pytest
import torch

import stator

ALL = os.environ.get("STATOR_FACTS") == "all"
pytestmark = pytest.mark.filterwarnings("ignore")


def with_grad(tensor):
    tensor.sum().backward()
    return tensor


def retaining(tensor):
    tensor.retain_grad()
    return tensor


def hooked(tensor):
    tensor.register_hook(lambda grad: grad)
    return tensor


def hooked_after(tensor):
    tensor.register_post_accumulate_grad_hook(lambda t: None)
    return tensor


def marked(tensor):
    tensor.note = 1
    return tensor


def inference(tensor):
    with torch.inference_mode():
        return tensor.clone()


def leaf(*sizes):
    return torch.ones(*sizes, requires_grad=True)


def viewed_without_grad():
    with torch.no_grad():
        return leaf(8)[:4]


def uncoalesced():
    return torch.sparse_coo_tensor(torch.tensor([[0, 0]]), torch.ones(2), (4,))


#: facts that the guard on a tensor leaves open
LATENT = {
    "storage offset": (lambda: torch.ones(8)[:4], lambda: torch.ones(8)[4:]),
    "offset of a matrix": (lambda: torch.ones(4, 4)[:2], lambda: torch.ones(4, 4)[1:3]),
    "leaf": (lambda: leaf(4), lambda: leaf(4) * 1),
    "leaf with a view": (lambda: leaf(4), lambda: leaf(8)[:4]),
    "view": (lambda: torch.ones(4), lambda: torch.ones(8)[:4]),
    "view of a result": (lambda: leaf(4) * 1, lambda: (leaf(8) * 1)[:4]),
    "view made without grad": (lambda: torch.ones(8)[:4], viewed_without_grad),
    "multiple views": (lambda: (leaf(2, 4) * 1)[0], lambda: (leaf(2, 4) * 1).unbind()[0]),
    "version": (lambda: torch.ones(4), lambda: torch.zeros(4).add_(1)),
    "output number": (lambda: torch.std_mean(leaf(4, 2), 1)[1], lambda: leaf(4, 2).mean(1)),
    "grad": (lambda: leaf(4), lambda: with_grad(leaf(4))),
    "retains grad": (lambda: leaf(4) * 1, lambda: retaining(leaf(4) * 1)),
    "hook": (lambda: leaf(4), lambda: hooked(leaf(4))),
    "hook of a result": (lambda: leaf(4) * 1, lambda: hooked(leaf(4) * 1)),
    "hook after": (lambda: leaf(4), lambda: hooked_after(leaf(4))),
    "attribute": (lambda: torch.ones(4), lambda: marked(torch.ones(4))),
    "storage size": (lambda: torch.ones(8)[:4], lambda: torch.ones(9)[:4]),
    "shared memory": (lambda: torch.ones(4), lambda: torch.ones(4).share_memory_()),
    "parameter with grad": (
        lambda: torch.nn.Parameter(torch.ones(4)),
        lambda: with_grad(torch.nn.Parameter(torch.ones(4))),
    ),
    "offset of a parameter": (
        lambda: torch.nn.Parameter(torch.ones(8)[:4]),
        lambda: torch.nn.Parameter(torch.ones(8)[4:]),
    ),
}  # fmt: skip


def quantised():
    return torch.quantize_per_tensor(torch.ones(4), 0.5, 0, torch.qint8)


#: facts that it compares
GUARDED = {
    "requires grad": (lambda: torch.ones(4), lambda: leaf(4)),
    "data type": (lambda: torch.ones(4), lambda: torch.ones(4, dtype=torch.float64)),
    "size": (lambda: torch.ones(4), lambda: torch.ones(5)),
    "number of dimensions": (lambda: torch.ones(4), lambda: torch.ones(4, 1)),
    "stride": (lambda: torch.ones(4, 4), lambda: torch.ones(4, 4).t()),
    "expanded": (lambda: torch.ones(4), lambda: torch.ones(1).expand(4)),
    "device": (lambda: torch.ones(4), lambda: torch.ones(4, device="meta")),
    "conjugate": (lambda: torch.ones(4) * 1j, lambda: (torch.ones(4) * -1j).conj()),
    "negative": (lambda: torch.ones(4), lambda: torch._neg_view(-torch.ones(4))),
    "inference": (lambda: torch.ones(4), lambda: inference(torch.ones(4))),
    "layout": (lambda: torch.ones(4), lambda: torch.ones(4).to_sparse()),
    "coalesced": (lambda: torch.ones(4).to_sparse(), uncoalesced),
    "class": (lambda: torch.ones(4), lambda: torch.nn.Parameter(torch.ones(4), requires_grad=False)),
    "contents": (lambda: torch.ones(1), lambda: torch.zeros(1)),
    "quantised": (lambda: torch.ones(4), quantised),
}
FACTS = {**LATENT, **GUARDED}

#: names that are not tried, and why
LEFT_OUT = {
    **dict.fromkeys(
        ("__hash__", "data_ptr", "const_data_ptr", "mutable_data_ptr", "_cdata", "__dlpack__"),
        "an address: tried below",
    ),
    **dict.fromkeys(("__repr__", "__str__", "__format__"), "text names the function of autograd: see test_operations"),
    **dict.fromkeys(("__init_subclass__", "__subclasshook__", "__new__", "__init__"), "about the class"),
    **dict.fromkeys(("_use_count", "__sizeof__", "__weakref__"), "about the references to the object, or its layout"),
    **dict.fromkeys(("__dir__", "__class__", "__dict__", "__doc__"), "of every object: see the family for all types"),
    **dict.fromkeys(("_fix_weakref", "_make_dtensor"), "for torch's own use: it breaks the object"),
    **dict.fromkeys(("empty_like", "new_empty"), "memory as it is"),
    "__reduce_ex__": "takes an argument",
}


#: the facts' own names: asked of every pair
OWN = """
__annotations__ __bool__ __deepcopy__ __dict__ __float__ __getstate__ __len__ __reduce__ _backward_hooks _base
_is_view _post_accumulate_grad_hooks _version abs_ contiguous data device dim dtype element_size grad grad_fn
is_coalesced is_complex is_conj is_contiguous is_inference is_leaf is_neg is_nonzero is_quantized is_shared
is_signed is_sparse item itemsize layout nbytes ndim nelement numel output_nr requires_grad retains_grad shape size
storage_offset stride tolist untyped_storage
""".split()
#: fact -> names that are not tried of it, and why
LEFT_OUT_OF = {
    "quantised": {
        "_neg_view": "torch crashes, without Stator, in `int_repr` of it",
        "_lazy_clone": "torch crashes, without Stator, in `qscheme` of it: it has no quantizer",
    }
}


def names(fact):
    left_out = {*LEFT_OUT, *LEFT_OUT_OF.get(fact, ()), "new"}
    found = sorted({*dir(torch.Tensor), *dir(torch.nn.Parameter)} - left_out)
    if ALL:
        return found
    others = [name for name in found if name not in OWN]
    return [*(name for name in found if name in OWN), *others[list(FACTS).index(fact) % 16 :: 16]]


def program(name, branch):
    raw = getattr(torch.nn.Parameter, name, None)
    read = f"x.{name}()" if callable(raw) else f"x.{name}"
    body = f"'yes' if {read} else 'no'" if branch else read
    space = {}
    exec(f"def program(x):\n    return {body}", space)
    return space["program"]


def describe(answer, depth=3):
    """What of an answer must be equal."""
    if isinstance(answer, torch.Tensor):
        return tensor_facts(answer, depth)
    if isinstance(answer, (list, tuple)):
        return type(answer).__name__, [describe(item, depth) for item in answer]
    if answer is None or isinstance(answer, (int, float, complex, str, torch.dtype, torch.device, torch.layout)):
        return type(answer).__name__, repr(answer)
    if isinstance(answer, (torch.UntypedStorage, torch.TypedStorage)):
        return type(answer).__name__, answer.nbytes(), answer.is_shared()
    if isinstance(answer, (dict, OrderedDict)):
        return type(answer).__name__, len(answer)
    return type(answer).__name__


def tensor_facts(tensor, depth):
    facts = [type(tensor).__name__, tensor.dtype, tensor.device, tensor.layout, tensor.requires_grad]
    if tensor.layout is torch.strided and not tensor.is_nested:
        facts += [tensor.shape, tensor.stride(), tensor.storage_offset(), tensor.is_conj(), tensor.is_neg()]
    try:
        facts.append(tensor.is_leaf)
    except RuntimeError as error:
        facts.append(str(error))
    if tensor.device.type != "meta":
        facts.append(shown_data(tensor))
    if depth and tensor.is_leaf:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            facts.append(describe(tensor.grad, depth - 1))
    return facts


def shown_data(tensor):
    plain = tensor.detach()
    if plain.is_quantized:
        plain = plain.int_repr()
    return repr((plain.to_dense() if plain.layout is not torch.strided else plain).tolist())


def outcome(function, make):
    """What a call gives, and what it leaves of its argument."""
    torch.default_generator.manual_seed(0)  # of this device alone: torch's own keeps each call for devices not there
    tensor = make()
    try:
        answer = describe(function(tensor))
    except Exception as error:
        # The words of an error may hold what they like; what it is is the answer.
        answer = type(error).__name__
    try:
        return answer, tensor_facts(tensor, 2), tensor.retains_grad, bool(tensor._backward_hooks)
    except Exception as error:
        return answer, type(error).__name__


def is_told(answer):
    """Whether an answer is of a kind that a trace could hold for known: the graph computes tensors anew."""
    return isinstance(answer, tuple) and answer[0] in _TOLD


_TOLD = ("int", "float", "bool", "complex", "str", "NoneType", "dtype", "device", "layout", "UntypedStorage")
_TOLD += ("TypedStorage", "dict", "OrderedDict")


def telling(fact):
    """The programs whose outcomes tell the two tensors apart, with these."""
    first, second = FACTS[fact]
    for name in names(fact):
        read = program(name, False)
        one, other = outcome(read, first), outcome(read, second)
        told = (any if fact in LATENT else all)((is_told(one[0]), is_told(other[0])))
        if not ALL and (one[0] == other[0] or (not told and name not in OWN and random.random() > 0.1)):
            continue
        yield name, read, one, other
        if told or ALL:
            branch = program(name, True)
            yield f"{name} in a branch", branch, outcome(branch, first), outcome(branch, second)


def misses(function, makes, wanted, backend="eager"):
    """Calls of the compiled function, one after the other, that do not have the outcome wanted."""
    compiled = stator.compile(function, backend=backend)
    got = [outcome(compiled, make) for make in makes]
    stator.reset()
    return [(want, have) for want, have in zip(wanted, got, strict=True) if want != have]


@pytest.mark.parametrize("fact", FACTS)
def test_answers_are_the_tensors_own(fact):
    random.seed(0)
    first, second = FACTS[fact]
    wrong, tried = [], 0
    for name, function, one, other in telling(fact):
        tried += 1
        wrong += [(name, miss) for miss in misses(function, (first, second), (one, other))]
        if fact in LATENT:
            wrong += [(name, miss) for miss in misses(function, (second, first), (other, one))]
    assert tried, "no program tells the two tensors apart"
    assert not wrong, "\n".join(map(str, wrong))


#: where a tensor is found, by what puts it there and the program that reads its `name`
def in_global(name):
    space = {"HELD": None}
    exec(f"def program():\n    return HELD.{name}", space)
    return lambda tensor: space.__setitem__("HELD", tensor), space["program"]


def in_closure(name):
    space = {}
    exec(f"def make():\n    held = None\n    def put(t):\n        nonlocal held\n        held = t\n"
         f"    def program():\n        return held.{name}\n    return put, program", space)  # fmt: skip
    return space["make"]()


def in_default(name):
    space = {}
    exec(f"def program(held=None):\n    return held.{name}", space)
    function = space["program"]
    return lambda tensor: setattr(function, "__defaults__", (tensor,)), function


def in_object(path, put):
    def place(name):
        space = {"held": SimpleNamespace(one=None, items=[None], table={"key": None}, cls=type("Held", (), {}))}
        exec(f"def program():\n    return held.{path}.{name}", space)
        return lambda tensor: put(space["held"], tensor), space["program"]

    return place


PLACES = {
    "global": in_global,
    "closure": in_closure,
    "default": in_default,
    "attribute": in_object("one", lambda held, tensor: setattr(held, "one", tensor)),
    "class attribute": in_object("cls.one", lambda held, tensor: setattr(held.cls, "one", tensor)),
    "list": in_object("items[0]", lambda held, tensor: held.items.__setitem__(0, tensor)),
    "dict": in_object("table['key']", lambda held, tensor: held.table.__setitem__("key", tensor)),
}
ASKED = {
    "storage offset": "storage_offset()",
    "offset of a parameter": "storage_offset()",
    "leaf": "is_leaf",
    "leaf with a view": "grad_fn is None",
    "retains grad": "retains_grad",
    "grad": "grad is None",
    "version": "_version",
    "output number": "output_nr",
    "hook": "_backward_hooks is None",
    "view": "_base is None",
    "attribute": "__dict__.get('note')",
    "shared memory": "is_shared()",
    "storage size": "untyped_storage().nbytes()",
    "stride": "stride()",
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("fact", ASKED)
def test_wherever_the_tensor_is_found(fact, place):
    put, program = PLACES[place](ASKED[fact])
    compiled = stator.compile(program, backend="eager")
    for make in (*FACTS[fact], *FACTS[fact]):
        put(make())
        assert compiled() == program()


@pytest.mark.parametrize("fact", ASKED)
def test_with_symbolic_sizes(fact):
    read = eval(f"lambda x: (x.shape[0], x.{ASKED[fact]})")
    for dynamic in (None, True):
        compiled = stator.compile(read, backend="aot_eager", dynamic=dynamic)
        for make in (*FACTS[fact], *FACTS[fact][::-1]):
            tensor = make()
            assert compiled(tensor) == read(tensor)
        stator.reset()
    for make in FACTS[fact]:
        tensor = make()
        stator.mark_dynamic(tensor, 0)
        compiled = stator.compile(read, backend="eager")
        assert compiled(tensor) == read(tensor)
        for other in FACTS[fact]:
            tensor = other()
            assert compiled(tensor) == read(tensor)


ADDRESSES = ("data_ptr()", "const_data_ptr()", "_cdata", "__hash__()", "untyped_storage().data_ptr()")


@pytest.mark.parametrize("name", ADDRESSES)
def test_addresses(name):
    read = eval(f"lambda x: x.{name}")
    compiled = stator.compile(read, backend="eager")
    memory = torch.ones(8)
    for tensor in (memory[:4], memory[4:], torch.ones(4)):
        assert compiled(tensor) == read(tensor)
