"""No attribute of an `nn.Module` answers from what another module, or the same one earlier, answered."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from tests.completeness.containers import changes
from tests.completeness.runner import UNSTEADY, Kind, check
from tests.completeness.same import CONTENTS, MODULE

CONTENTS[torch.Tensor] = lambda t: [t.tolist(), t.dtype, tuple(t.shape), t.requires_grad, t.grad if t.is_leaf else None]


#: hooks are numbered through, for all modules
FIRST_HOOK = "import torch.utils.hooks as hooks; hooks.RemovableHandle.next_id = 0; "
UNSTEADY["o.compile()"] = "the wrapper that torch.compile leaves on the module holds the id of an object"


def make() -> Any:
    class Net(nn.Module):
        level = 1

        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2))
            self.child = nn.Identity()
            self.register_buffer("buffer", torch.zeros(1))

        def forward(self, *args: Any) -> Any:
            return self.level, len(args)

    Net.__module__ = MODULE
    Net.__annotations__ = {}
    return Net()


MODULES = Kind(
    "nn.Module",
    make,
    changes(
        "o.training = False",
        "o.eval()",
        "o.tag = 1",
        "o.weight.requires_grad_(False)",
        "del o.weight",
        "del o.child",
        "o.child = type(o)()",
        "o.buffer = None",
        "o.register_parameter('other', None)",
        "o.level = 2",
        "type(o).level = 3",
        "type(o).forward = lambda self, *args: 4",
        "o.forward = lambda *args: 5",
        "type(o).forward.__code__ = (lambda self, *args: 6).__code__",
        "o.child.training = False",
        "o.register_buffer('b', o.buffer + 1, persistent=False)",
        FIRST_HOOK + "o.register_forward_hook(lambda m, a, r: 7)",
        FIRST_HOOK + "o.register_forward_pre_hook(lambda m, a: None)",
        "o.double()",
        "o.zero = o.child",
        "type(o).tag = 8",
        "o.__class__ = type('N', (type(o),), {'__module__': MODULE, 'level': 9})",
        "o.weight.grad = o.weight * 2",
        FIRST_HOOK + "o.register_full_backward_hook(lambda m, a, r: None)",
        FIRST_HOOK + "o.register_state_dict_post_hook(lambda *a: None)",
        "type(o).__len__ = lambda self: 3",
        "type(o).extra_repr = lambda self: 'e'",
        "o.weight.data.add_(1)",
        FIRST_HOOK + "o.register_full_backward_pre_hook(lambda m, r: None)",
        FIRST_HOOK + "o.register_forward_hook(lambda m, a, k, r: 8, with_kwargs=True, always_call=True)",
        FIRST_HOOK + "o.register_forward_pre_hook(lambda m, a, k: None, with_kwargs=True)",
        FIRST_HOOK + "o.register_load_state_dict_pre_hook(lambda *a: None)",
        FIRST_HOOK + "o.register_load_state_dict_post_hook(lambda *a: None)",
        FIRST_HOOK + "o.register_state_dict_pre_hook(lambda *a: None)",
        "type(o).get_extra_state = lambda self: 3",
        "type(o).__annotations__['a'] = int",
    ),
    queries=(
        "[n for n, _ in o.named_parameters()]",
        "[n for n, _ in o.named_modules()]",
        "[n for n, _ in o.named_buffers()]",
        "[n for n, _ in o.named_children()]",
        "list(o.state_dict())",
        "o.weight.requires_grad",
        "o.weight.dtype",
        "o.child.training",
        "o.weight.grad is None",
        "o.buffer is None",
    ),
    constant={
        "of torch.nn.Module": "T_destination _version call_super_init dump_patches",
        "no such device here": "cuda ipu mtia xpu",
        "made by `o.compile()` only": "_compiled_call_impl",
        "put on the class by torch.compile, once used": "___needs_generation_tag_patch ___has_generation_tag_patch",
    },
)


def test_no_answer_of_a_module_is_stale() -> None:
    check(MODULES)
