"""Tensors that a class or a metaclass holds: what they are like may change, though the class goes on holding them."""

import pytest
import torch

import stator

PROGRAMS = {}


def reads(make_holder):
    """Reads of a tensor through a holder, made by `make_holder(tensor)` as (object, read)."""
    PROGRAMS[make_holder.__name__] = make_holder
    return make_holder


@reads
def class_attribute(tensor):
    class Net:
        t = tensor

    return lambda: Net.t


@reads
def attribute_of_the_class_of_an_instance(tensor):
    class Net:
        t = tensor

    net = Net()
    return lambda: net.t


@reads
def class_reached_through_an_instance(tensor):
    class Held:
        t = tensor

    class Net:
        def __init__(self):
            self.kind = Held

    net = Net()
    return lambda: net.kind.t


@reads
def metaclass_attribute(tensor):
    class Meta(type):
        t = tensor

    class Net(metaclass=Meta):
        pass

    return lambda: Net.t


@reads
def tuple_of_a_class(tensor):
    class Net:
        parts = (tensor, 1)

    return lambda: Net.parts[0]


@reads
def dict_of_a_class(tensor):
    class Net:
        parts = {"t": tensor}

    return lambda: Net.parts["t"]


@reads
def attribute_of_an_object_of_a_class(tensor):
    class Part:
        pass

    class Net:
        part = Part()

    Net.part.t = tensor
    return lambda: Net.part.t


def replace_data(tensor):
    tensor.data = torch.full((2, 1), 3.0, dtype=torch.float64)


CHANGES = {
    "requires_grad": lambda tensor: tensor.requires_grad_(),
    "unsqueeze": lambda tensor: tensor.unsqueeze_(0),
    "transpose": lambda tensor: tensor.t_(),
    "data": replace_data,
    "resize": lambda tensor: tensor.resize_(3, 3).fill_(1.0),
}


CASES = [(holder, change, "eager") for holder in PROGRAMS for change in CHANGES]
CASES += [("class_attribute", change, "aot_eager") for change in CHANGES]


@pytest.mark.parametrize(("holder", "change", "backend"), CASES)
def test_change_is_noticed(holder, change, backend):
    tensor = torch.arange(6.0).reshape(2, 3).clone()
    read = PROGRAMS[holder](tensor)

    def program():
        t = read()
        return t, (t * 2).sum(0), t.shape, t.dtype, t.requires_grad, t.stride(), t.is_contiguous()

    traced = stator.compile(program, backend=backend)

    def check():
        expected, found = program(), traced()
        assert found[0] is expected[0]
        assert found[2:] == expected[2:]
        assert found[1].requires_grad == expected[1].requires_grad
        torch.testing.assert_close(found[1], expected[1])
        if found[1].requires_grad:
            (mine,), (theirs,) = (torch.autograd.grad(each[1].sum(), tensor) for each in (found, expected))
            torch.testing.assert_close(mine, theirs)

    for _ in range(7):
        check()
    CHANGES[change](tensor)
    for _ in range(3):
        check()
