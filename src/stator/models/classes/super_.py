"""super: `Objects/typeobject.c`."""

from __future__ import annotations

from stator import errors
from stator.guards.source import GetAttrSource, Source
from stator.host.version_facts import SUPER_NAMES_THE_OBJECT
from stator.space.attributes import MISSING, attribute_name
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.operands import check_kind
from stator.space.protocol import NONE, models
from stator.space.space import Space
from stator.space.value import Constant, ExtensibleValue, NotKnown, Unsupported, Value


@models(super)
class SuperValue(ExtensibleValue):
    """`super(this, obj)`: attributes of `obj` looked up after the class `this`."""

    __slots__ = ("obj", "obj_type", "slots", "this")
    FIELDS = {
        "__self__": lambda self, space: self.obj or NONE,
        "__thisclass__": lambda self, space: NONE if self.this is None else space.class_value(self.this),
        "__self_class__": lambda self, space: NONE if self.obj_type is None else space.class_value(self.obj_type),
    }

    def __init__(self, cls: type = super) -> None:
        super().__init__(cls)
        self.this: type | None = None
        self.obj: Value | None = None
        self.obj_type: type | None = None
        self.slots: dict[Host, Value | None] = {}

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> SuperValue:
        self = cls(space.guard_type(host, source))
        self.host, self.source = host, source
        fields = {n: super.__dict__[n].__get__(host) for n in ("__thisclass__", "__self__", "__self_class__")}
        for name in ("__thisclass__", "__self_class__"):
            space.guard_identity_of(GetAttrSource(source, name), fields[name])
        self.this, self.obj_type = fields["__thisclass__"], fields["__self_class__"]
        if self.obj_type is not None:
            self.obj = space.wrap(fields["__self__"], GetAttrSource(source, "__self__")).force()
        return self

    @staticmethod
    def tp_new(space: Space, cls: Value, /, *args: Value, **kwargs: Value) -> Value:
        if len(args) > 2:
            raise space.error(TypeError, f"super expected at most 2 arguments, got {len(args)}")
        return SuperValue(cls.force().as_host(space))

    def tp_init(self, space: Space, this: Value | None = None, obj: Value = NONE, /) -> Value:
        if self.source is not None:
            raise Unsupported(errors.UnsupportedMethod("super", "__init__"))
        if this is None:
            this, obj = _from_frame(space)
        this, obj = this.force(), obj.force()
        check_kind(space, this, type, "super() argument 1 must be a type, not %T")
        self.this = this.as_host(space)
        if not obj.is_none():
            self.obj_type = self._check(space, obj)
            self.obj = obj
        return NONE

    def _check(self, space: Space, obj: Value) -> type:
        """`supercheck`: the class in whose MRO the search goes on."""
        assert self.this is not None
        if obj.isa(type):
            host: type = obj.as_host(space)
            if space.derives(host, self.this):
                return host
        if space.derives(obj.cls, self.this):
            return obj.cls
        claimed = space.getattr_or_none(obj, "__class__")
        if claimed is not None and claimed.isa(type):
            host = claimed.force().as_host(space)
            if host is not obj.cls and space.derives(host, self.this):
                return host
        raise space.error(TypeError, self._refusal(space, obj))

    def _refusal(self, space: Space, obj: Value) -> str:
        assert self.this is not None
        if not SUPER_NAMES_THE_OBJECT:
            return "super(type, obj): obj must be an instance or subtype of type"
        known = space.known(obj)
        is_class = known is not NotKnown and issubclass(type(known), type)
        shown = f"type {space.class_name(known)}" if is_class else f"instance of {obj.type_name(space)}"
        return f"super(type, obj): obj ({shown}) is not an instance or subtype of type ({space.class_name(self.this)})."

    # -- attributes -------------------------------------------------------------------------------------------------

    def getattr(self, space: Space, name: str, in_tail_position: bool = False) -> Value:
        """`super_getattro`."""
        if self.obj_type is not None and name != "__class__":
            found = self._after(space, name)
            if found is not None:
                assert self.obj is not None
                if space.host_lookup(found.cls, "__get__") is MISSING:
                    return found
                bound = None if self._on_class() else self.obj
                return space.descr_get(found, bound, self.obj_type, in_tail_position)
        return space.generic_getattr(self, name, in_tail_position)

    def _on_class(self) -> bool:
        """Whether `super(this, cls)` was asked of the class itself, so that nothing is bound."""
        assert self.obj is not None
        return self.obj.isa(type) and self.obj.host is self.obj_type

    def _after(self, space: Space, name: str) -> Value | None:
        """The attribute in the MRO after `this`."""
        assert self.obj_type is not None
        mro = space.mro(self.obj_type)
        start = mro.index(self.this) + 1 if self.this in mro else len(mro)
        for base in mro[start:]:
            overlay = space.trace.classes.overlays.get(base)
            if (overlay is not None and name in overlay) or name in base.__dict__:
                return space.lookup(base, name)
            space.host_lookup(base, name)  # guards that this class goes on having none of its own
        return None

    def tp_getattribute(self, space: Space, name: Value, /) -> Value:
        return self.getattr(space, attribute_name(space, name))

    def tp_get(self, space: Space, instance: Value, owner: Value, /) -> Value:
        if instance.is_none() or self.obj is not None:
            return self
        assert self.this is not None
        return space.call(space.class_value(self.cls), [space.class_value(self.this), instance], {})

    def tp_repr(self, space: Space) -> Value:
        this = "NULL" if self.this is None else space.class_name(self.this)
        shown = "NULL" if self.obj_type is None else f"<{space.class_name(self.obj_type)} object>"
        return Constant(f"<super: <class '{this}'>, {shown}>")

    # -- the value protocol -----------------------------------------------------------------------------------------

    def rebuilt(self, writer: Writer) -> str:
        if self.cls is not super or self.this is None:
            return super().rebuilt(writer)
        parts = [writer.const(self.this)] + ([] if self.obj is None else [writer.expr(self.obj)])
        return writer.assign("parent", f"{writer.const(super)}({', '.join(parts)})")


def _from_frame(space: Space) -> tuple[Value, Value]:
    """What `super()` without arguments finds in the frame that calls it."""
    frame = space.trace.frame
    code = frame.code
    if not code.co_argcount:
        raise space.error(RuntimeError, "super(): no arguments")
    first = code.co_varnames[0]
    cell = frame.cells.get(first)
    obj = frame.locals.get(first) if cell is None else cell.contents
    if obj is None:
        raise space.error(RuntimeError, "super(): arg[0] deleted")
    if "__class__" not in code.co_freevars:
        raise space.error(RuntimeError, "super(): __class__ cell not found")
    this = frame.cells["__class__"].contents
    if this is None:
        raise space.error(RuntimeError, "super(): empty __class__ cell")
    this = this.force()
    if not this.isa(type):
        raise space.error(RuntimeError, f"super(): __class__ is not a type ({this.type_name(space)})")
    return this, obj
