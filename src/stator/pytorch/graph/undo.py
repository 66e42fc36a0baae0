"""Taking back what a graph that has failed did: then ordinary Python executes the frame from its beginning.

The program's prints, appends and attribute writes come after the graph, so none has been performed when it fails:

    def f(x, i):
        log.append(1)
        x.mul_(2)
        return x[i]        # fails: `x` is put back, and the whole of `f` runs as ordinary Python, handlers and all

How much there is to take back depends on the backend. One that `writes_last` has written nothing when it fails. Of one
that runs the operations in order, the operations before the failing one have been performed, as in eager execution: if
nothing but tensors shows that, the error alone has to be put in its place (see `located`). In all other cases what the
graph writes is copied before it runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from stator._core import keep_contents, plan_keeping, put_contents_back
from stator.models.stdlib.critical_section import CriticalSection
from stator.pytorch import internals
from stator.pytorch.fake.python_code import runs_no_python
from stator.pytorch.graph.irrevocable import irrevocable, is_put_back, is_reshaped, within_limit
from stator.pytorch.objects.resizing import Resizes
from stator.pytorch.state.random_state import restore, saved

if TYPE_CHECKING:
    from stator.pytorch.graph.located import Located
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.traced import TracedTensor
    from stator.space.interfaces import Writer

#: tensors, their copies (or what the core has kept), versions, what shows their shapes, the state of the generators
Kept: TypeAlias = tuple[Any, ...]

__all__ = ["Copies", "Recovery", "recovery"]


class Copies:
    """Copies the tensors that a graph writes; puts their contents, versions and places in autograd's graph back.

    Args:
        written: the tensors that the graph writes, at the end of the trace.
        random: whether the random generators are to be put back too.
    """

    def __init__(self, written: list[TracedTensor], random: bool) -> None:
        self.random = random
        tensors = [value.host for value in written]
        #: the positions of those that are of other sizes afterwards
        self.reshaped = [number for number, value in enumerate(written) if is_reshaped(value)]
        #: for each tensor, whether autograd knows how it was computed, and whether it requires gradients
        self.histories = [tensor.requires_grad and not tensor.is_leaf for tensor in tensors]
        self.wanted = [tensor.requires_grad for tensor in tensors]
        self.any_history = any(self.histories)
        #: what is made in inference mode counts no versions
        self.versionless = any(tensor.is_inference() for tensor in tensors)
        self.only_contents = not (random or self.reshaped or any(self.wanted) or self.versionless)
        #: how the core keeps what lies in their memory, where it can do that itself
        self.plan = _plan(tensors) if self.only_contents else None
        self.dtypes = [tensor.dtype for tensor in tensors]

    def save(self, *tensors: torch.Tensor) -> Kept:
        """What `undo` needs. This is on the path of every call."""
        if self.only_contents:  # what most graphs write: buffers that autograd has no part in
            kept = None if self.plan is None else keep_contents(self.plan, tensors)
            copies: Any = internals.clone_all(tensors) if kept is None else kept
            return tensors, copies, [*map(internals.version, tensors)], (), None
        if any(self.wanted):
            with torch.no_grad():
                copies = internals.clone_all(tensors)
        else:
            copies = internals.clone_all(tensors)
        if self.any_history:
            with torch.enable_grad():
                pairs = zip(tensors, copies, self.histories, strict=True)
                copies = [tensor.clone() if history else copy for tensor, copy, history in pairs]
        versions = [] if self.versionless else [internals.version(tensor) for tensor in tensors]
        shapes = [tensors[number].detach() for number in self.reshaped]
        return tensors, copies, versions, shapes, saved() if self.random else None

    def impossible(self, state: Kept) -> bool:
        """Whether not everything can be undone: a view stays where autograd has put it."""
        pairs = zip(state[0], self.wanted, strict=True)
        return any(internals.is_view(tensor) for tensor, wanted in pairs if tensor.requires_grad != wanted)

    def undo(self, state: Kept) -> None:
        """Put everything back."""
        tensors, copies, versions, shapes, random = state
        for number, shape in zip(self.reshaped, shapes, strict=True):
            tensors[number].data = shape
        if isinstance(copies, bytes):
            copies = self._put_back(tensors, copies)
        for number, tensor in enumerate(tensors):
            if self.histories[number] or tensor.requires_grad != self.wanted[number]:
                tensor.detach_()
            if copies is not None:
                # Leaving inference mode switches gradients on.
                with torch.inference_mode(tensor.is_inference()), torch.set_grad_enabled(self.histories[number]):
                    tensor.copy_(copies[number])
            if tensor.requires_grad != self.wanted[number]:
                tensor.requires_grad_(self.wanted[number])
        if versions:
            internals.set_versions(tensors, tuple(versions))
        if random is not None:
            restore(random)

    def _put_back(self, tensors: Kept, kept: bytes) -> list[torch.Tensor] | None:
        """Write what the core has kept; what is not in the same kind of memory any more is left to torch."""
        assert self.plan is not None
        if put_contents_back(self.plan, tensors, kept):
            return None
        copies, begin, memory = [], 0, bytearray(kept)
        for tensor, dtype in zip(tensors, self.dtypes, strict=True):
            end = begin + tensor.numel() * dtype.itemsize
            flat = torch.frombuffer(memory[begin:end], dtype=dtype) if end > begin else torch.empty(0, dtype=dtype)
            copies.append(flat.as_strided(tensor.size(), tensor.stride()))
            begin = end
        return copies


def _plan(tensors: list[torch.Tensor]) -> bytes | None:
    """How the core keeps them; None where one lies on another device, or its elements are not what its memory says.

    A tangent, of which memory says nothing either, no tensor has here: no level of forward mode has begun, as the
    guards of every frame make sure.
    """
    if any(tensor.device.type != "cpu" or tensor.is_conj() or tensor.is_neg() for tensor in tensors):
        return None
    return plan_keeping(tuple(tensors), tuple(tensor.dtype.itemsize for tensor in tensors))


class Recovery:
    """What the generated program does about a graph that fails.

    `save` is the expression of what it keeps before, `undo` the function that takes that and puts everything back;
    `refused`, in which `{saved}` is what was kept, is true where the frame must not be executed again.
    """

    def __init__(self, save: str = "", undo: str = "", refused: str = "") -> None:
        self.save = save
        self.undo = undo
        self.refused = refused


def recovery(recorder: Recorder, located: Located | None, writer: Writer, *, checked: bool) -> Recovery | None:
    """How to recover from a failure of this graph; None where the frame cannot be executed again.

    One that is `checked` may also turn out to have computed what the trace had ruled out.
    """
    effects, resizes = recorder.effects, recorder.trace.extension(Resizes)
    _suit_locks(recorder)
    # What was printed is printed again, rather than that handlers are passed by: not where nothing has failed.
    acts = effects.acts if checked else effects.once
    if not recorder.trace.root.repeatable or acts or (checked and resizes.last):
        return _early(located, writer)
    in_order = located is not None and not located.asserts_late
    if in_order and not effects.exposed and not effects.inert and not checked and not resizes:
        return _early(located, writer)
    writes_last = located is None and recorder.writes_last  # where inputs overlap, the graph runs in its order
    if not effects.written or (writes_last and not checked):
        return Recovery(f"{writer.const(saved)}()", writer.const(restore)) if effects.random else Recovery()
    must = checked or effects.asserting or resizes
    if located is None and not must and not within_limit(recorder):
        return None
    if not all(is_put_back(value) for value in effects.written):
        return _early(located, writer)
    # What has had no memory has had nothing in it.
    written = [value for value in effects.written if value not in resizes.short_before]
    copies = Copies(written, effects.random)
    tensors = [writer.const(v.host) if v.source is None else writer.source(v.source) for v in written]
    save = f"{writer.const(copies.save, 'copies')}({', '.join(tensors)})"
    impossible = f"{writer.const(copies.impossible, 'cannot_put_back')}({{saved}})"
    return Recovery(save, writer.const(copies.undo, "put_back"), impossible)


def _early(located: Located | None, writer: Writer) -> Recovery | None:
    """Execute the frame again only where the graph has failed before the first operation that shows."""
    if located is None:
        return None
    return Recovery(refused=f"not {writer.const(located.is_early, 'is_early')}(error)")


def _suit_locks(recorder: Recorder) -> None:
    """The graph of a program that takes locks runs under them, or can be undone if it turns out to have run in vain."""
    section = recorder.trace.extension(CriticalSection)
    if section:
        around = section.around_graph
        fits = not section.written_before and runs_no_python(recorder) if around else not irrevocable(recorder)
        if not fits:
            section.give_up()
