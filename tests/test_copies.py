"""What is copied or pickled comes back compiled, with caches of its own."""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import multiprocessing
import pickle
import typing
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import stator
from stator._core import Compiled

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def twice(x: float, *, more: int = 1) -> float:
    """Doubles."""
    return x * 2 * more


twice.mark = [1]  # type: ignore[attr-defined]


@stator.compile(backend="eager", fullgraph=True, name="ours", recompile_limit=3)
def decorated(x: float) -> float:
    return x + 1


class Scale:
    def __init__(self, by: float) -> None:
        self.by = by
        self.compiled = stator.compile(self.scaled, backend="eager")

    def scaled(self, x: float) -> float:
        return x * self.by

    @stator.compile(backend="eager")
    def decorated(self, x: float) -> float:
        return x - self.by

    @functools.cached_property
    def cached(self) -> Any:
        return stator.compile(self.scaled, backend="eager")


@dataclasses.dataclass
class Holder:
    function: Any = dataclasses.field(default_factory=lambda: stator.compile(twice, backend="eager"))


def ways(protocols: Any = PROTOCOLS) -> list[Any]:
    pickled = [functools.partial(pickled_with, protocol) for protocol in protocols]
    return [copy.copy, copy.deepcopy, *pickled]


def pickled_with(protocol: int, item: Any) -> Any:
    return pickle.loads(pickle.dumps(item, protocol))


def entries(compiled: Any) -> int:
    return len(compiled._stator_region.codes())


@pytest.mark.parametrize("way", ways())
def test_a_copy_of_a_function_is_compiled_by_itself(way: Callable[[Any], Any]) -> None:
    compiled = stator.compile(twice, backend="eager", fullgraph=True, dynamic=False, recompile_limit=2, name="double")
    compiled(1.0)
    made = way(compiled)
    assert type(made) is Compiled and made is not compiled and made.__wrapped__ is twice
    assert entries(made) == 0
    assert made(1.5) == 3.0
    assert (entries(made), entries(compiled)) == (1, 1)
    old, new = compiled._stator_region, made._stator_region
    assert old is not new and old.region is not new.region
    assert (new.fullgraph, new.dynamic, new.name) == (True, False, "double")
    assert new.config == old.config and new.config.recompile_limit == 2
    assert new.backend is old.backend


def test_what_is_found_by_its_name_is_pickled_by_it() -> None:
    for protocol in PROTOCOLS:
        assert pickled_with(protocol, decorated) is decorated
        assert pickled_with(protocol, Scale.decorated) is Scale.decorated
    assert copy.copy(decorated) is not decorated
    made = copy.deepcopy(decorated)
    assert made(1.0) == 2.0 and made._stator_region.config.recompile_limit == 3


@pytest.mark.parametrize("way", ways())
def test_compiled_methods(way: Callable[[Any], Any]) -> None:
    scale = Scale(3.0)
    assert scale.cached(2.0) == scale.compiled(2.0) == 6.0
    made = way(scale)
    assert made.compiled(2.0) == made.cached(2.0) == made.scaled(2.0) == 6.0
    assert made.decorated(5.0) == way(scale.decorated)(5.0) == 2.0
    if way is not copy.copy:
        assert made.compiled.__wrapped__.__self__ is made
        made.by = 10.0
        assert (made.compiled(1.0), scale.compiled(1.0)) == (10.0, 3.0)


@pytest.mark.parametrize("way", ways()[1:])
def test_an_object_that_holds_its_own_compiled_method(way: Callable[[Any], Any]) -> None:
    made = way(Scale(3.0).compiled)
    owner = made.__wrapped__.__self__
    assert owner.compiled is made
    assert made(2.0) == 6.0


@pytest.mark.parametrize("way", ways())
def test_what_holds_a_compiled_function(way: Callable[[Any], Any]) -> None:
    holder = Holder()
    holder.function(1.0)
    assert way(holder).function(2.0) == 4.0
    assert way(functools.partial(holder.function, more=2))(2.0) == 8.0
    assert way([holder.function])[0](2.0) == 4.0


def test_one_object_stays_one_object() -> None:
    compiled = stator.compile(twice, backend="eager")
    for way in ways()[1:]:
        a, b = way([compiled, compiled])
        assert a is b


def own_backend(gm: Any, example_inputs: Any) -> Any:
    return gm.forward


@pytest.mark.needs_torch
def test_a_backend_is_pickled_by_reference() -> None:
    restored = pickle.loads(pickle.dumps(stator.compile(twice, backend=own_backend)))
    assert restored._stator_region.backend is own_backend
    unnamed = stator.compile(twice, backend=lambda gm, example_inputs: gm.forward)
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(unnamed)
    assert copy.deepcopy(unnamed)(2.0) == 4.0


def test_a_lambda_cannot_be_pickled() -> None:
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(stator.compile(lambda x: x, backend="eager"))


def test_copied_inside_of_a_compiled_function() -> None:
    compiled = stator.compile(twice, backend="eager")

    def program(x: float) -> Any:
        made = copy.deepcopy(compiled)
        return made(x), made is compiled, pickle.loads(pickle.dumps(compiled))(x)

    assert stator.compile(program, backend="eager")(2.0) == program(2.0) == (4.0, False, 4.0)


def send(function: Any, queue: Any) -> None:
    queue.put((function(2.0), type(function).__name__, function._stator_region.name))


def test_sent_to_another_process() -> None:
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    process = context.Process(target=send, args=(decorated, queue))
    process.start()
    assert queue.get() == (3.0, "Compiled", "ours")
    process.join(60)


# -- what is read of them ---------------------------------------------------------------------------------------------


def test_attributes_are_those_of_the_function() -> None:
    compiled = stator.compile(twice, backend="eager")
    for name in ("__name__", "__qualname__", "__doc__", "__module__", "__annotations__", "mark"):
        assert getattr(compiled, name) is getattr(twice, name)
    assert inspect.signature(compiled) == inspect.signature(twice)
    assert typing.get_type_hints(compiled) == typing.get_type_hints(twice)
    assert inspect.unwrap(compiled) is twice and inspect.getdoc(compiled) == "Doubles."
    assert inspect.getsource(compiled) == inspect.getsource(twice)
    assert functools.wraps(compiled)(lambda: None).__name__ == "twice"
    assert repr(compiled) == f"<compiled {twice!r}>"
    assert weakref.ref(compiled)() is compiled and len({compiled, compiled, twice}) == 2


def test_attributes_are_set_on_the_compiled_function_alone() -> None:
    compiled: Any = stator.compile(twice, backend="eager")
    compiled.own = 3
    compiled.__name__ = "other"
    assert not hasattr(twice, "own") and twice.__name__ == "twice"
    for way in ways()[:2]:
        made = way(compiled)
        assert (made.own, made.__name__) == (3, "other")
        made.own = 4
        assert compiled.own == 3
    assert copy.deepcopy(compiled).mark is not compiled.mark and copy.copy(compiled).mark is compiled.mark
    assert pickle.loads(pickle.dumps(compiled)).own == 3


@pytest.mark.needs_torch
def test_a_compiled_module_has_the_signature_of_the_module() -> None:
    import torch

    model = torch.nn.Linear(2, 2)
    compiled = stator.compile(model, backend="eager")
    assert inspect.signature(compiled) == inspect.signature(model)
    assert inspect.signature(type(compiled)) == inspect.signature(torch.nn.Linear)
