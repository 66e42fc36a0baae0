"""Sizes that are computed again at each call, from those of a tensor that the program was given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from stator.guards.source import CallSource, Source
from stator.pytorch.fake.metadata import is_symbol

if TYPE_CHECKING:
    import torch

    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.types import Number

__all__ = ["computed_sizes"]


def computed_sizes(
    recorder: Recorder, numbers: Sequence[Number]
) -> tuple[Source, Callable[[torch.Tensor], tuple[int, ...]]] | None:
    """What computes the numbers, and the source of the tensor that it is to be given; None where no one tensor does."""
    symbols = sorted({s for number in numbers if is_symbol(number) for s in number.node.expr.free_symbols}, key=str)
    found = [getattr(recorder.shapes.symbols.get(symbol), "source", None) for symbol in symbols]
    sources = [source for source in found if isinstance(source, CallSource)]
    bases = {source.base for source in sources}
    if len(bases) != 1 or len(sources) < len(found):
        return None
    if not all(number.node.expr.is_polynomial(*symbols) for number in numbers if is_symbol(number)):
        return None
    texts = [str(number.node.expr) if is_symbol(number) else repr(number) for number in numbers]
    compute = eval(f"lambda {', '.join(map(str, symbols))}: ({', '.join(texts)},)", {"__builtins__": {}})
    readers = [source.fn for source in sources]

    def sizes(tensor: torch.Tensor) -> tuple[int, ...]:
        return compute(*[read(tensor) for read in readers])

    return bases.pop(), sizes
