"""`id`: a number that is never known while tracing, only whether two are the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stator import errors
from stator.objects.protocol import builtin
from stator.objects.value import Unsupported, Value
from stator.stdlib.support import bool_value, hooked, refuse

if TYPE_CHECKING:
    from stator.objects.space import Space
    from stator.residual.writer import Writer


class IdKey:
    """The id as key of a dict made by the trace: equal to the id of the same object, and to no other key."""

    __slots__ = ("anchor",)

    def __init__(self, anchor: Any) -> None:
        self.anchor = anchor

    def __hash__(self) -> int:
        return id(self.anchor)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int):
            raise refuse("id of an object, compared with a number")
        return isinstance(other, IdKey) and other.anchor is self.anchor


class IdValue(Value):
    """`id(target)`."""

    __slots__ = ("target",)

    def __init__(self, target: Value) -> None:
        self.cls = int
        self.source = None
        self.target = target

    def key(self, space: Space) -> Any:
        return IdKey(space.identity(self.target))

    def describe(self) -> str:
        return f"the id of {self.target.describe()}"

    def reconstruct(self, writer: Writer) -> str:
        return str(writer.assign("id_", f"id({writer.expr(self.target)})"))


@builtin(id)
def id_(space: Space, value: Value, /) -> Value:
    return IdValue(value.force())


def _comparison(host: Any, same: bool) -> None:
    def model(space: Space, left: Value, right: Value, /) -> Value:
        left, right = left.force(), right.force()
        if not isinstance(left, IdValue) and not isinstance(right, IdValue):
            return hooked(space, host, [left, right])
        if isinstance(left, IdValue) and isinstance(right, IdValue):
            return bool_value(space.is_(left.target, right.target) == same)
        raise Unsupported(errors.UnsupportedCCall("id of an object, compared with a number"))

    builtin(host)(model)


_comparison(int.__eq__, True)
_comparison(int.__ne__, False)


@builtin(int.__hash__)
def int_hash(space: Space, value: Value, /) -> Value:
    if isinstance(value.force(), IdValue):
        raise refuse("hash of the id of an object")
    return hooked(space, int.__hash__, [value.force()])
