"""The grammar with tensors: small ones of one type and width, so that most operations fit.

What fails when a graph runs, and not when it is traced, has no place in the program: such operations are left out.
"""

from __future__ import annotations

from tests.fuzz import expressions, statements

LITERALS = {
    "tensor": [
        "torch.ones(3)",
        "torch.zeros(3)",
        "torch.tensor([1.0, -2.0, 3.0])",
        "torch.arange(3.0)",
        "torch.ones(2, 3)",
        "torch.tensor(2.0)",
        "torch.ones(3, requires_grad=True)",
        "torch.arange(6.0).reshape(2, 3)",
    ],
    **expressions.LITERALS,
}

EXPRESSIONS = {
    "tensor": [
        "$tensor + $tensor",
        "$tensor * $int",
        "$tensor - $float",
        "torch.relu($tensor)",
        "$tensor.sum()",
        "-$tensor",
        "torch.where($tensor > 0, $tensor, $int)",
        "$tensor[0]",
        "$tensor.detach()",
        "$tensor.clone()",
        "$tensor.float()",
        "$tensor.mul(2)",
        "torch.stack([$tensor, $tensor])",
        "torch.cat([$tensor, $tensor])",
        "$tensor.reshape(-1)",
        "$tensor.view(-1)",
        "($tensor > $int).float()",
        "($tensor == $tensor).float()",
        "torch.full((3,), 0.5)",
        "$tensor.add_($int)",
        "$tensor.mean()",
        "$int * $tensor",
        "$tensor.max()",
        "$tensor.unsqueeze(0)",
        "torch.tensor([float($int)])",
        "sum([$tensor, $tensor])",
        "$tensor if $bool else $tensor",
        "$function($tensor)",
        "$tensor.T",
        "$tensor[:2]",
        "torch.zeros_like($tensor)",
        "$tensor / $int",
        "$tensor.expand(2, 3)",
        "abs($tensor)",
        "$tensor.cumsum(0)",
    ],
    **{
        kind: menu
        + {
            "int": [
                "$tensor.shape[0]",
                "$tensor.dim()",
                "$tensor.numel()",
                "len($tensor)",
                "int($tensor.sum())",
                "$tensor.size(0)",
            ],
            "float": [
                "$tensor.sum().item()",
                "float($tensor.float().mean())",
                "$tensor.max().item()",
            ],
            "bool": [
                "bool(($tensor > $int).all())",
                "$tensor.requires_grad",
                "$tensor is $tensor",
                "torch.equal($tensor, $tensor)",
                "$tensor.dtype == torch.float32",
                "$tensor.sum() > $int",
            ],
            "list": [
                "$tensor.tolist()",
                "[$tensor, $tensor]",
                "list($tensor)",
            ],
            "str": [
                "str($tensor.shape)",
                "str($tensor.dtype)",
                "f'''{$tensor}'''",
            ],
            "tuple": [
                "tuple($tensor.shape)",
                "($tensor, $tensor)",
                "$tensor.unbind()",
            ],
            "dict": [
                "{'a': $tensor}",
            ],
        }.get(kind, [])
        for kind, menu in expressions.EXPRESSIONS.items()
    },
}

SIMPLE = [
    "$new_tensor = $tensor",
    "$old_tensor = $tensor",
    "$old_tensor += $tensor",
    "$tensor.add_($int)",
    "$tensor.mul_($tensor)",
    "$tensor[0] = $int",
    "$object.x = $tensor",
    "$list.append($tensor)",
    *statements.SIMPLE,
]
COMPOUND = [
    "if $tensor.sum() > $int:\n    $block",
    "if ($tensor > $int).any():\n    $block\nelse:\n    $block",
    "for @tensor in $^tensor:\n    $loop",
    "with torch.no_grad():\n    $block",
    *statements.COMPOUND,
]
