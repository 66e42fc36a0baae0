"""Programs of detection and generation that stop, choose or repeat by what is in tensors."""

from __future__ import annotations

from typing import Any

import torch

WORDS = 12


def logits(tokens: Any) -> Any:
    """A language model: what follows depends on the last token."""
    table = torch.sin(torch.arange(WORDS * WORDS, dtype=torch.float64)).view(WORDS, WORDS)
    return table[tokens[:, -1]]


def greedy(tokens: Any) -> Any:
    for _ in range(6):
        following = logits(tokens).argmax(-1, keepdim=True)
        tokens = torch.cat([tokens, following], 1)
        if (following == 3).all():
            break
    return tokens


def until_all_are_done(tokens: Any) -> Any:
    unfinished = torch.ones(tokens.shape[0], dtype=torch.long)
    while tokens.shape[1] < 8:
        following = logits(tokens).argmax(-1) * unfinished
        tokens = torch.cat([tokens, following[:, None]], 1)
        unfinished = unfinished & (following != 3)
        if unfinished.max() == 0:
            break
    return tokens


def top_p(tokens: Any) -> Any:
    chances, order = logits(tokens).softmax(-1).sort(descending=True)
    drop = chances.cumsum(-1) - chances > 0.6
    chances = chances.masked_fill(drop, 0)
    kept = (~drop).sum(-1)
    return order.gather(-1, chances.argmax(-1, keepdim=True)), kept, order[0, : kept[0]]


def beams(tokens: Any) -> Any:
    scores = torch.zeros(tokens.shape[0], dtype=torch.float64)
    for _ in range(3):
        chances = logits(tokens).log_softmax(-1) + scores[:, None]
        scores, flat = chances.view(-1).topk(tokens.shape[0])
        tokens = torch.cat([tokens[flat // WORDS], (flat % WORDS)[:, None]], 1)
    return tokens, scores


def cached_step(tokens: Any) -> Any:
    cache, position = torch.zeros(1, 16, 3), (tokens > 3).sum()
    for _ in range(2):
        cache[:, position : position + 2] = tokens[:1, :2, None].float()
        position = position + 2
    return cache[:, :position].sum(1), cache[:, position:].mean(), cache


def boxes(tokens: Any) -> Any:
    """Boxes in one dimension, by their first and last place, and how sure they are."""
    first = tokens[:, 0].double()
    return torch.stack([first, first + tokens[:, 1] + 1], 1), torch.cos(first)


def suppressed(tokens: Any) -> Any:
    """The best box, and then the best of those that do not overlap it, and so on."""
    places, scores = boxes(tokens)
    order, kept = scores.argsort(descending=True), []
    while order.numel() > 0:
        best = order[0]
        kept.append(best)
        rest = order[1:]
        overlap = torch.minimum(places[best, 1], places[rest, 1]) - torch.maximum(places[best, 0], places[rest, 0])
        order = rest[overlap <= 0]
    return torch.stack(kept)


def above(tokens: Any) -> Any:
    places, scores = boxes(tokens)
    keep = scores > 0
    return places[keep], scores[keep].sum(), keep.nonzero().squeeze(1)


def best_of_many(tokens: Any) -> Any:
    places, scores = boxes(tokens)
    keep = scores > -0.5
    places, scores = places[keep], scores[keep]
    if scores.shape[0] > 2:
        scores, order = scores.topk(2)
        places = places[order]
    return places, scores


def of_each_class(tokens: Any) -> Any:
    places, scores = boxes(tokens)
    classes, counts = torch.unique(tokens[:, 1], return_counts=True)
    return [scores[tokens[:, 1] == c].max() for c in classes], counts, places.sum()


def accepted(tokens: Any) -> Any:
    """Speculative decoding: guesses count up to the first that is wrong."""
    guesses = logits(tokens).argmax(-1)
    right = (guesses == tokens[:, 0]).long().cumprod(0).sum()
    return tokens[: int(right) + 1], torch.arange(int(right)), guesses


def tokens(n: int) -> tuple[torch.Tensor]:
    return (torch.arange(n * 2).view(n, 2) * 5 % WORDS,)


#: each program, and whether nothing in it breaks
PROGRAMS = {
    program.__name__: (program, whole)
    for program, whole in {
        greedy: False,
        until_all_are_done: False,
        top_p: True,
        beams: True,
        cached_step: True,
        suppressed: False,
        above: True,
        best_of_many: False,
        of_each_class: False,
        accepted: True,
    }.items()
}
