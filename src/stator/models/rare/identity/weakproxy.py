"""weakref.proxy: what a proxy is asked for is asked of its referent."""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable
from typing import Any

from stator import errors
from stator.guards.source import Source
from stator.host.version_facts import WEAK_PROXIES_SHOW_LIKE_REFERENCES
from stator.models.identity.weaklist import PlainRefs
from stator.models.identity.weakref_ import refer_to_new
from stator.models.text.addresses import address, joined_text, referent_type
from stator.space.attributes import MISSING
from stator.space.host_types import Host
from stator.space.identity.reachability import WeakTarget, is_alive
from stator.space.interfaces import Writer
from stator.space.protocol import MODELS, NONE, bad_call, builtin, register
from stator.space.space import Space
from stator.space.value import ObjectValue, Unsupported, Value

#: method → the function that asks the referent for it
_ASKED: dict[str, Callable[..., Any]] = {
    "__getattribute__": getattr,
    "__setattr__": setattr,
    "__delattr__": delattr,
    "__contains__": operator.contains,
    "__getitem__": operator.getitem,
    "__setitem__": operator.setitem,
    "__delitem__": operator.delitem,
    "__invert__": operator.invert,
    "__neg__": operator.neg,
    "__pos__": operator.pos,
    "__index__": operator.index,
    "__divmod__": divmod,
    **{f"__{kind.__name__}__": kind for kind in (str, bytes, bool, int, float, len, iter, reversed, abs)},
}
#: of these only the proxy itself is followed
_OWN_ONLY = (setattr, operator.setitem, operator.contains)
_COMPARED = ("lt", "le", "eq", "ne", "gt", "ge")
_COMPUTED = ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and", "xor", "or")


class ProxyValue(ObjectValue):
    """A weak proxy; nothing is asked of an existing one."""

    __slots__ = ("_target", "callback")

    def __init__(self, cls: type, referent: Value | None, callback: Value = NONE) -> None:
        super().__init__(cls)
        self._target = WeakTarget(referent)
        self.callback = callback

    @property
    def referent(self) -> Value | None:
        return self._target.get()

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> ProxyValue:
        self = cls(space.guard_type(host, source), None)
        self.host, self.source = host, source
        return self

    def rebuilt(self, writer: Writer) -> str:
        referent = self.referent
        if referent is None:
            raise Unsupported(errors.LifetimeObserved("a weak proxy of an object that is gone"))
        parts = f"{writer.expr(referent)}, {writer.expr(self.callback)}"
        return str(writer.assign("proxy", f"{writer.const(weakref.proxy)}({parts})"))


def referent_of(space: Space, value: Value) -> Value:
    """What a proxy stands for, which must certainly live; any other value is itself."""
    value = value.force()
    if not isinstance(value, ProxyValue):
        return value
    if value.source is not None:
        raise Unsupported(errors.UnsupportedObject("a weakref.proxy that was made outside the compiled function"))
    referent = value.referent
    if referent is None:
        raise space.error(ReferenceError, "weakly-referenced object no longer exists")
    if not is_alive(space, referent):
        raise Unsupported(errors.LifetimeObserved("a weak proxy of an object that may be gone"))
    return referent


@builtin(weakref.proxy)
def proxy(space: Space, referent: Value, callback: Value = NONE, /) -> Value | None:
    referent, callback = referent_of(space, referent), callback.force()
    if not referent.cls.__weakrefoffset__:
        raise space.error(TypeError, f"cannot create weak reference to '{referent.type_name(space)}' object")
    if referent.source is not None:
        return None
    refer_to_new(space, referent, callback)
    callable_ = space.host_lookup(referent.cls, "__call__") is not MISSING
    cls = weakref.CallableProxyType if callable_ else weakref.ProxyType
    if callback is not NONE:
        return ProxyValue(cls, referent, callback)
    # One object has one proxy without a callback.
    known = space.trace.extension(PlainRefs).proxies
    found = known.get(id(referent))
    if found is None or found.referent is not referent:
        found = known[id(referent)] = ProxyValue(cls, referent)
    return found


def _ask(host: Host, function: Callable[..., Any], swapped: bool = False) -> None:
    """The method `host` of proxies is `function` of their referents."""

    def model(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        followed = args[:1] if function in _OWN_ONLY else args
        operands = [*(referent_of(space, arg) for arg in followed), *args[len(followed) :]]
        return space.call(space.existing(function), operands[::-1] if swapped else operands, kwargs)

    register(host, model)


def _next(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`proxy_iternext`, which has words of its own."""
    referent = referent_of(space, args[0])
    if space.special(referent, "__next__") is None:
        words = "Weakref proxy referenced a non-iterator"
        raise space.error(TypeError, f"{words} '{referent.type_name(space)}' object")
    return space.call(space.existing(next), [referent], kwargs)


def _call(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return space.call(referent_of(space, args[0]), args[1:], kwargs)


def _install(cls: Any) -> None:
    MODELS[cls] = ProxyValue
    asked = dict(_ASKED)
    asked |= {f"__{name}__": getattr(operator, name) for name in _COMPARED}
    for name in _COMPUTED:
        asked[f"__{name}__"] = getattr(operator, f"__{name}__")
        asked[f"__i{name}__"] = getattr(operator, f"__i{name}__")
        _ask(cls.__dict__[f"__r{name}__"], getattr(operator, f"__{name}__"), swapped=True)
    _ask(cls.__dict__["__rdivmod__"], divmod, swapped=True)
    for name, function in asked.items():
        if name in cls.__dict__:
            _ask(cls.__dict__[name], function)
    register(cls.__dict__["__next__"], _next)
    if "__call__" in cls.__dict__:
        register(cls.__dict__["__call__"], _call)


_install(weakref.ProxyType)
_install(weakref.CallableProxyType)


@builtin(weakref.ProxyType.__repr__, weakref.CallableProxyType.__repr__)
def proxy_repr(space: Space, proxy: Value, /) -> Value:
    """`proxy_repr`, which is what `repr` alone shows of a proxy."""
    proxy = proxy.force()
    if not isinstance(proxy, ProxyValue):
        return bad_call(space, weakref.ProxyType.__repr__, [proxy], {})
    referent = referent_of(space, proxy)
    name = referent_type(space, referent)
    to = f"; to '{name}' at " if WEAK_PROXIES_SHOW_LIKE_REFERENCES else f" to {name} at "
    return joined_text(space, "<weakproxy at ", address(space, proxy), to, address(space, referent), ">")
