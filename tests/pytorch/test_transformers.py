"""nn.Transformer and its parts in evaluation: torch's own faster roads, of which one goes over nested tensors."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch
from torch import nn

import stator
from tests.pytorch.gradients import BACKENDS, alike

CLOSE = 1e-5


def encoder(layers: int = 2, **options: Any) -> nn.TransformerEncoder:
    norm = nn.LayerNorm(4) if options.pop("norm", False) else None
    layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, **options)
    return nn.TransformerEncoder(layer, layers, norm=norm).eval()


def padded(n: int) -> tuple[torch.Tensor, ...]:
    """A batch whose rows are of different lengths, and the mask of what they lack."""
    x = torch.linspace(-1, 1, n * 5 * 4).sin().reshape(n, 5, 4)
    return x, torch.arange(5) >= torch.arange(n)[:, None] % 5 + 1


def whole(n: int) -> tuple[torch.Tensor, ...]:
    x, mask = padded(n)
    return x, torch.zeros_like(mask)


def holey(n: int) -> tuple[torch.Tensor, ...]:
    x, mask = padded(n)
    return x, mask.flip(1)


def masked(model: nn.Module) -> Any:
    def run(x: Any, mask: Any) -> Any:
        with torch.no_grad():
            return model(x, src_key_padding_mask=mask)

    return run


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("inputs", [padded, whole, holey])
@pytest.mark.parametrize("options", [{}, {"norm": True}, {"activation": "gelu"}, {"norm_first": True}], ids=str)
def test_an_encoder_takes_padded_rows_as_eager_does(backend, inputs, options):
    def make():
        return masked(encoder(**options)), []

    alike(make, inputs, backend=backend, breaks=0, tolerance=CLOSE)


def test_with_inductor():
    alike(lambda: (masked(encoder()), []), padded, backend="inductor", sizes=(3,), calls=1, breaks=0, tolerance=1e-4)


@pytest.mark.parametrize("backend", BACKENDS)
def test_masks_of_both_kinds_follow_each_other(backend):
    run = masked(encoder())
    compiled = stator.compile(run, backend=backend)
    for inputs in (padded, holey, whole, holey, padded):
        args = inputs(4)
        torch.testing.assert_close(compiled(*args), run(*args))


@pytest.mark.parametrize("backend", BACKENDS)
def test_where_gradients_are_wanted_nothing_is_nested(backend):
    def make():
        model = encoder()
        return functools.partial(nn.Module.__call__, model), list(model.parameters())

    def inputs(n: int) -> tuple[torch.Tensor, ...]:
        x, mask = padded(n)
        return x.requires_grad_(), None, mask  # type: ignore[return-value]

    alike(make, inputs, backend=backend, breaks=0, tolerance=CLOSE)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_layer_that_looks_at_the_nested_tensor_is_left_to_python(backend):
    class Looking(nn.TransformerEncoderLayer):
        def forward(self, src: Any, **options: Any) -> Any:
            self.seen = (
                src.is_nested,
                src.dtype,
                src.dim(),
                src.is_floating_point(),
                [row.shape[0] for row in src.unbind()],
            )
            return super().forward(src, **options)

    def make():
        layer = Looking(4, 2, 8, batch_first=True)
        model = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 2).eval()
        model.layers.append(layer.eval())

        def run(x: Any, mask: Any) -> Any:
            with torch.no_grad():
                return model(x, src_key_padding_mask=mask), str(layer.seen)

        return run, []

    alike(make, padded, backend=backend, tolerance=CLOSE)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_nested_tensor_is_a_result(backend):
    def run(x: Any, mask: Any) -> Any:
        return torch._nested_tensor_from_mask(x, mask.logical_not(), mask_check=False)

    compiled = stator.compile(run, backend=backend)
    for n in (4, 7):
        got, expected = compiled(*padded(n)), run(*padded(n))
        assert got.is_nested
        for one, other in zip(got.unbind(), expected.unbind(), strict=True):
            assert torch.equal(one, other)


LAYERS = {
    "plain": {},
    "keys": {"src_key_padding_mask": padded(3)[1]},
    "causal": {"src_mask": nn.Transformer.generate_square_subsequent_mask(5)},
    "told causal": {"src_mask": nn.Transformer.generate_square_subsequent_mask(5), "is_causal": True},
    "bool": {"src_mask": torch.ones(5, 5, dtype=torch.bool).triu(1)},
    "both": {
        "src_mask": torch.ones(5, 5, dtype=torch.bool).triu(1),
        "src_key_padding_mask": padded(3)[1],
    },
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("mode", ["no_grad", "grad", "train"])
@pytest.mark.parametrize("kind", LAYERS)
def test_a_layer_with_masks(backend, mode, kind):
    def make():
        layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True).train(mode == "train")

        def run(x: Any) -> Any:
            with torch.set_grad_enabled(mode != "no_grad"):
                return layer(x, **LAYERS[kind])

        return run, list(layer.parameters())

    def inputs(n: int) -> tuple[torch.Tensor, ...]:
        return (padded(3)[0],)

    alike(make, inputs, backend=backend, sizes=(3,), breaks=0, tolerance=CLOSE)
