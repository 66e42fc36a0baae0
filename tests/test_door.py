"""What can't be guarded can't be read: existing objects are asked only through `space/facts.py`."""

from pathlib import Path

import pytest

from tests.door import reads, reads_in

PACKAGE = Path(__file__).parent.parent / "src" / "stator"

_CONSTANT = "the host of a Constant, which is guarded to be what it is"
_OWN = "the host is the trace's own object; an existing one of the kind is refused"
_ITSELF = "guards what it reads itself"
_TENSOR = "a fact that TensorMatch guards"
_VARYING = "its TypeIs or Equals is made where the number is found to vary, or not to"

#: "file: function", or "file: Class" for all of its methods → why it may read by itself
EXCEPTIONS = {
    "models/functions/cell.py: CellValue.from_host": _ITSELF,
    "models/classes/descriptors.py: FieldDescriptor.read_existing": "wraps what it reads: C-level attributes",
    "models/classes/descriptors.py: FieldDescriptor._refuse_if_readonly": "asks the descriptor about an empty object",
    "models/functions/function.py: FunctionValue.from_host": "`guard_code` guards it when a call depends on it",
    "models/functions/function.py: FunctionValue.defaults": _ITSELF,
    "models/functions/function.py: FunctionValue.kwdefault": _ITSELF,
    "models/functions/function.py: FunctionValue._set_code": _CONSTANT,
    "models/iterators/iterator.py: PositionIterator.rebuilt": "the length of a list that was loaded; it is guarded",
    "models/rare/text/memoryview_.py: MemoryView": _OWN,
    "models/rare/text/memoryview_.py: MemoryIterator": _OWN,
    "models/functions/method.py: BuiltinValue._check_class": "a C descriptor on a sample: CPython words the error",
    "space/operators.py: Operators.truth": _CONSTANT,
    "space/protocol.py: _Signature._takes_by_name": "a C function that a model is registered for",
    "space/recursion.py: repr_piece": _CONSTANT,
    "models/containers/dict_iterators.py: DictIterator.from_host": "an OrderedDict's breaks; others are guarded",
    "models/containers/sequence.py: Sequence.position": _CONSTANT,
    "models/containers/set_table.py: SetTable": "by set's own methods; the class, `_finish` and `has` guard it",
    "models/containers/tuple_.py: TupleValue.get_field": "of a fresh structure sequence; an existing one's is wrapped",
    "models/containers/tuple_.py: TupleValue.rebuilt": "of a fresh structure sequence",
    "models/classes/type_.py: class_names": "of a class that cannot change, or one that the trace has made",
    "codegen/resume_functions.py: _timeless": "which continuation is written, not what it does",
    "models/rare/numbers/decimal_context.py: SignalsValue": "the class and the keys of the flags are C code's",
    "models/rare/stdlib/io_.py: MemoryFile": _OWN,
    "models/rare/stdlib/io_.py: TextFile": _OWN,
    "models/rare/stdlib/io_.py: BytesFile": _OWN,
    "pytorch/state/generators.py: GeneratorValue.now": "wraps what it reads: the tensor of the state",
    "pytorch/distributed/meshes.py: _slice": "of a mesh that is guarded to be this one",
    "pytorch/distributed/groups.py: _backend": "wraps what it reads: what moves a group's tensors",
    "pytorch/graph/refusals.py: _is_compressed": "what is so breaks; a compiled graph takes it all the same",
    "pytorch/composed/nested.py: Existing.perform": "what TensorMatch tells of a tensor that is not dense",
    "pytorch/composed/sparse.py: part": "what TensorMatch tells of a tensor that is not dense",
    "pytorch/composed/sparse.py: composition": "what TensorMatch tells of a tensor that is not dense",
    "pytorch/composed/sparse.py: _product": "what TensorMatch tells of a tensor that is not dense",
    "pytorch/composed/sparse.py: _recorded": "what TensorMatch tells of a tensor that is not dense",
    "pytorch/tensors/attributes.py: version": "one made in inference mode breaks; TensorMatch tells it from others",
    "pytorch/modules/lazy.py: _infer_parameters": "a lazy module is initialised before the trace that guards it begins",
    "pytorch/rare_sides.py: _called": "a guess, which is checked when the graph has run",
    "pytorch/numpy/array_value.py: _existing": "from_host has guarded it",
    "pytorch/backend_call/alike.py: _Description._input": _TENSOR,
    "pytorch/backend_call/contract.py: in_context": _TENSOR,
    "pytorch/shapes/dynamism.py: _note": _VARYING,
    "pytorch/shapes/dynamism.py: contents_stay": "compared between traces only",
    "pytorch/shapes/dynamism.py: number_varies": _VARYING,
    "pytorch/tensors/recipes.py: Search.now": "guarded by who asks: by what is found, or by the contents themselves",
    "pytorch/tensors/known.py: _same_contents": _ITSELF,
    "pytorch/tensors/latent.py: rely_on_offset": _TENSOR,
    "pytorch/shapes/shapes.py: Shapes.fakify": _TENSOR,
    "pytorch/shapes/shapes.py: Shapes.number": _VARYING,
    "pytorch/shapes/dynamism.py: literal": _VARYING,
    "pytorch/graph/irrevocable.py: _bytes": "how much there is to save, of what TensorMatch guards",
    "pytorch/graph/irrevocable.py: _unlike_a_copy": "its place in autograd is guarded; TensorMatch does the rest",
    "pytorch/graph/irrevocable.py: _more_than_elements": "of a written tensor, and TensorMatch guards it",
    "pytorch/graph/irrevocable.py: is_reshaped": "compared after the graph has been recorded, with what was recorded",
    "pytorch/graph/versions.py: counting_writes": _TENSOR,
    "pytorch/state/contexts.py: _is_from_outside": _TENSOR,
    "pytorch/tensors/tensor.py: TensorValue.from_host": _TENSOR,
}


def _key(where):
    """The exception that covers a function: its own, or that of its class."""
    return next((key for key in (where, where.rpartition(".")[0]) if key in EXCEPTIONS), None)


def test_existing_objects_are_read_through_the_door():
    astray = [f"{read.where}, line {read.line}: {read.text}" for read in reads(PACKAGE) if _key(read.where) is None]
    assert not astray, "read through space/facts.py, or say in EXCEPTIONS why not:\n" + "\n".join(astray)


def test_each_exception_is_needed():
    assert set(EXCEPTIONS) - {_key(read.where) for read in reads(PACKAGE)} == set()


PLANTED = {
    "private attribute of torch's": "def f(self):\n    return internals.version(self.host)",
    "attribute": "def f(self):\n    return self.host.name",
    "type": "def f(self):\n    return type(value.host)",
    "length": "def f(self):\n    return len(self.host)",
    "getattr": "def f(self, name):\n    return getattr(self.host, name)",
    "isinstance": "def f(self):\n    return isinstance(self.host, int)",
    "subscript": "def f(self):\n    return self.host[0]",
    "loop": "def f(self):\n    for item in self.host: pass",
    "comprehension": "def f(self):\n    return [item for item in self.host]",
    "star": "def f(self):\n    return [*self.host]",
    "membership": "def f(self, key):\n    return key in self.host",
    "text": "def f(self):\n    return f'{self.host}'",
    "local name": "def f(self):\n    obj = self.host\n    return obj.name",
    "one of two names": "def f(self):\n    obj, source = self.host, self.source\n    return obj.name",
    "conditional": "def f(self):\n    obj = None if self.host is None else self.host\n    return obj.name",
    "name bound in an expression": "def f(self):\n    return (obj := self.host) is not None and obj.name",
    "realiser": "def f(space, host, source):\n    return host.name",
    "inner function": "def f(space, host, source):\n    def g():\n        return host.name",
    "method": "class A:\n    def f(self):\n        return self.host.name",
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_read_is_found(name):
    assert [read.line for read in reads_in("planted.py", PLANTED[name])]


CLEAN = {
    "identity": "def f(self):\n    return self.host is None",
    "handed on": "def f(self, space):\n    return facts.attribute(space, self, '__doc__')",
    "raw reader": "def f(self):\n    return instance_dict(self.host)",
    "another function's name": "def f(self):\n    obj = self.host\ndef g(obj):\n    return obj.name",
}


@pytest.mark.parametrize("name", CLEAN)
def test_nothing_else_is_found(name):
    assert not list(reads_in("clean.py", CLEAN[name]))
