"""Python functions: calling one inlines its frame."""

from __future__ import annotations

import builtins
import types
import weakref
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from stator import errors
from stator._core import runs_its_code
from stator.guards.guard import CodeIs, Distinct, IdIs, Length, NoKey
from stator.guards.source import DictItemSource, FunctionSource, GetAttrSource, ItemSource, Source
from stator.host.version_facts import CHANGED_KIND_OF_CODE_WARNS, FUNCTIONS_TAKE_KEYWORD_DEFAULTS, LAZY_ANNOTATIONS
from stator.models.functions.annotations import check_annotate, evaluated
from stator.models.functions.cell import CellValue
from stator.models.functions.method import Bindable
from stator.space.binding import Mismatch, bind
from stator.space.facts import fixed, plain_name
from stator.space.globals_ import Globals, made_names, name_in
from stator.space.interfaces import Trace, Writer
from stator.space.operands import host_errors
from stator.space.protocol import INTERCEPTS, NONE, Handler, Refusal, TailCall, bad_call, handler_of, models
from stator.space.space import Space
from stator.space.value import Constant, ExtensibleValue, Raised, Unsupported, Value

#: attributes of a function that the traced program may read, in the order CPython lists them
_FIELDS = ("__code__", "__name__", "__qualname__", "__doc__", "__module__", "__builtins__")


#: what they may be set to, in CPython's words
_MUST_BE: dict[str, tuple[type, str]] = {
    "__code__": (types.CodeType, "a code object"),
    "__name__": (str, "a string object"),
    "__qualname__": (str, "a string object"),
    "__type_params__": (tuple, "a tuple"),
    "__defaults__": (tuple, "a tuple object"),
    "__kwdefaults__": (dict, "a dict object"),
    "__annotations__": (dict, "a dict object"),
}

#: those that None, or deleting them, empties
_PARTS = frozenset({"__defaults__", "__kwdefaults__", "__annotations__"})

#: what makes a function in some versions only
_NEWER_PARTS = frozenset({"kwdefaults"} if FUNCTIONS_TAKE_KEYWORD_DEFAULTS else ())

#: flags of code that makes generators and coroutines
_SUSPENDS = 0x20 | 0x80 | 0x200


class Intercepted:
    """The models that the layers above have for Python functions, asked for once in a trace."""

    def __init__(self, trace: Trace) -> None:
        self._found: dict[int, Handler | None] = {}

    def model_of(self, host: types.FunctionType) -> Handler | None:
        """The model of a function that is not to be traced into, or None."""
        key = id(host)
        if key not in self._found:
            self._found[key] = _intercepted(host)
        return self._found[key]


def _intercepted(host: types.FunctionType) -> Handler | None:
    return next((model for ask in INTERCEPTS if (model := ask(host)) is not None), None)


def refusal_of(host: types.FunctionType) -> Refusal | None:
    """The model of a function that is kept out of graphs; None for any other."""
    found = _refusals.get(host)
    if found is None:
        model = _intercepted(host)
        if isinstance(model, Refusal):
            found = _refusals[host] = model
    return found


#: those found, as guards ask for them
_refusals = weakref.WeakKeyDictionary[types.FunctionType, Refusal]()


@models(types.FunctionType)
class FunctionValue(Bindable, ExtensibleValue):
    """A function: an existing one (`host`), or one made by the traced program."""

    __slots__ = (
        *("_cells", "_defaults", "_guarded", "_kwdefaults"),
        *("annotate", "annotations", "code", "fields", "globals"),
    )
    ALWAYS_EXISTING = True
    CACHED_WEAKLY = True
    FIELDS = {
        "__code__": lambda self, space: Constant(self.code),
        "__name__": lambda self, space: Constant(self.code.co_name),
        "__qualname__": lambda self, space: Constant(self.code.co_qualname),
        "__module__": lambda self, space: Constant(self.globals.get("__name__")),
        "__doc__": lambda self, space: Constant(self.docstring),
        "__globals__": lambda self, space: space.trace.namespaces.globals_of(self.globals).value(space),
        "__builtins__": lambda self, space: space.trace.namespaces.builtins_of(self.globals).value(space),
        "__closure__": lambda self, space: space.new_tuple(list(self._cells)) if self._cells else NONE,
        "__defaults__": lambda self, space: space.new_tuple(list(self._defaults)) if self._defaults else NONE,
        "__kwdefaults__": lambda self, space: self._kwdefaults_dict(space),
        "__annotations__": lambda self, space: self._annotations_made(space),
        "__type_params__": lambda self, space: space.new_tuple([]),
    }
    if LAZY_ANNOTATIONS:
        FIELDS["__annotate__"] = lambda self, space: self.annotate or NONE

    def __init__(self, code: types.CodeType, globals_: dict[str, Any], name: str) -> None:
        super().__init__(types.FunctionType)
        self.code = code
        self.globals = globals_
        self.fields: dict[str, Value] = {"__name__": Constant(name)}
        self.annotations: Value | None = None
        self.annotate: Value | None = None
        self._cells: list[CellValue] | None = []
        self._defaults: list[Value] | None = []
        self._kwdefaults: dict[str, Value] | None = {}
        #: the code that a guard has been made on
        self._guarded: types.CodeType | None = None

    @classmethod
    def from_host(cls, space: Space, host: types.FunctionType, source: Source) -> FunctionValue:
        self = cls(host.__code__, fixed(host, "__globals__"), "")
        self.host, self.source = host, source
        self.fields = {}
        self._cells = self._defaults = self._kwdefaults = None
        space.guard_type(host, source)
        return self

    @classmethod
    def made(cls, space: Space, code: types.CodeType, globals_: Globals) -> FunctionValue:
        """`MAKE_FUNCTION`."""
        self = cls(code, globals_, code.co_name)
        if made_names(globals_) is not None:
            self.fields["__module__"] = name_in(space, globals_, "__name__") or NONE
        return self

    @staticmethod
    def tp_new(
        space: Space,
        cls: Value,
        code: Value,
        globals: Value,
        name: Value = NONE,
        argdefs: Value = NONE,
        closure: Value = NONE,
        **more: Value,
    ) -> Value:
        """`func_new_impl`: from 3.13 on, `kwdefaults` too."""
        if not more.keys() <= _NEWER_PARTS:
            return bad_call(space, types.FunctionType, [code, globals], more)
        parts = [value.force() for value in (code, globals, name, argdefs, closure)]
        _check_parts(space, parts, more)
        host = space.known(code)
        if not isinstance(host, types.CodeType) or parts[1].cls is not dict:
            raise Unsupported(errors.UnsupportedCCall("function.__new__"))
        made = FunctionValue(host, space.trace.namespaces.globals_from(parts[1]), host.co_name)
        names = space.trace.namespaces.globals_of(made.globals)
        if names.value(space) is not parts[1]:
            raise Unsupported(errors.UnsupportedUse("function.__new__", "with a dict that is known by two ways"))
        inherited = space.trace.namespaces.builtins_of(space.trace.frame.globals)
        usual = inherited is space.trace.namespaces.globals_of(vars(builtins))
        if names.get_str(space, "__builtins__") is None and not usual:
            raise Unsupported(errors.UnsupportedUse("function.__new__", "in a frame with builtins of its own"))
        if not parts[2].is_none():
            made.fields["__name__"] = parts[2]
        made.fields["__module__"] = names.get_str(space, "__name__") or NONE
        for flag, value in ((1, parts[3]), (2, more.get("kwdefaults", NONE).force()), (8, parts[4])):
            if not value.is_none():
                made.set_part(space, flag, value)
        return made

    # -- parts ------------------------------------------------------------------------------------------------------

    def cells(self, space: Space) -> list[CellValue]:
        """The closure, in the order of `co_freevars`."""
        if self._cells is None:
            closure = fixed(self.host, "__closure__") or ()
            assert self.source is not None
            base = GetAttrSource(self.source, "__closure__")
            self._cells = [space.existing_cell(cell, ItemSource(base, i)) for i, cell in enumerate(closure)]
        return self._cells

    def defaults(self, space: Space) -> list[Value]:
        """The values of `__defaults__`."""
        if self._defaults is None:
            values = self.host.__defaults__
            assert self.source is not None
            base = GetAttrSource(self.source, "__defaults__")
            space.trace.guard(IdIs(base, None) if values is None else Length(base, len(values)))
            self._defaults = [space.wrap(value, ItemSource(base, i)) for i, value in enumerate(values or ())]
        return self._defaults

    def kwdefault(self, space: Space, name: str) -> Value | None:
        """The default of a keyword-only parameter, or None."""
        if self._kwdefaults is not None:
            return self._kwdefaults.get(name)
        values = self.host.__kwdefaults__
        assert self.source is not None
        base = GetAttrSource(self.source, "__kwdefaults__")
        if values is not None and name in values:
            # A guard that only loads: there must be such a default, even if it is never looked at.
            space.trace.guard(Distinct(DictItemSource(base, name), ()))
            return space.wrap(values[name], DictItemSource(base, name))
        space.trace.guard(IdIs(base, None) if values is None else NoKey(base, name))
        return None

    def held(self) -> Iterable[Value]:
        parts = (*(self._cells or ()), *(self._defaults or ()), *(self._kwdefaults or {}).values())
        return parts if self._attrs is None else (*parts, *self._attrs.held())

    def get_field(self, space: Space, name: str) -> Value | None:
        """A C-level attribute (`__code__`, `__defaults__` …)."""
        if name in self.fields:
            return self.fields[name]
        if self.host is not None and name != "__globals__":
            return None
        if self.source is not None:
            space.guard_identity_of(GetAttrSource(self.source, name), self.globals)
        return super().get_field(space, name)

    @property
    def docstring(self) -> str | None:
        """What the first constant of its code is, if that is text."""
        first = next(iter(self.code.co_consts), None)
        return first if isinstance(first, str) else None

    def _kwdefaults_dict(self, space: Space) -> Value:
        pairs: list[tuple[Value, Value]] = [(Constant(k), v) for k, v in (self._kwdefaults or {}).items()]
        return space.new_dict(pairs) if pairs else NONE

    def _annotations_made(self, space: Space) -> Value:
        if self.annotations is None:
            self.annotations = evaluated(space, self.annotate)
        return self.annotations

    def set_field(self, space: Space, name: str, value: Value | None) -> bool:
        """Assign a C-level attribute; False where Stator has no model of that."""
        if name in _MUST_BE:
            required, words = _MUST_BE[name]
            given = type(None) if value is None else value.force().cls
            if not issubclass(given, required) and not (given is type(None) and name in _PARTS):
                raise space.error(TypeError, f"{name} must be set to {words}")
        if name in _PARTS:
            return self._set_part(space, name, value)
        if name == "__annotate__":
            return self._set_annotate(space, value)
        if name == "__code__" and self.host is None:
            return self._set_code(space, value)
        if name not in ("__name__", "__qualname__", "__doc__", "__module__", "__type_params__"):
            return False
        space.mark_mutated(self)
        self.fields[name] = Constant(None) if value is None else value
        return True

    def _set_code(self, space: Space, value: Value | None) -> bool:
        value = None if value is None else value.force()
        if not isinstance(value, Constant) or self._cells is None:
            return False
        code: types.CodeType = value.host
        if (code.co_flags ^ self.code.co_flags) & _SUSPENDS and CHANGED_KIND_OF_CODE_WARNS:
            return False
        own, new = len(self._cells), len(code.co_freevars)
        if own != new:
            name = space.str_(space.getattr(self, "__name__"))
            text = f"{name}() requires a code object with {own} free vars, not {new}"
            raise space.error(ValueError, text)
        space.mark_mutated(self)
        for field in ("__name__", "__qualname__", "__doc__"):
            self.fields.setdefault(field, space.getattr(self, field))
        self.code = code
        return True

    def _set_part(self, space: Space, name: str, value: Value | None) -> bool:
        if self.host is not None:
            return False
        space.mark_mutated(self)
        empty = value is None or space.known(value) is None
        if name == "__annotations__":
            self.annotations, self.annotate = None if empty else value, None
        elif name == "__defaults__":
            self._defaults = [] if empty else space.unpack(value)  # type: ignore[arg-type]
        else:
            self._kwdefaults = {} if empty else value.force().str_items(space)  # type: ignore[union-attr]
        return True

    def _set_annotate(self, space: Space, value: Value | None) -> bool:
        if value is None:
            raise space.error(TypeError, "__annotate__ cannot be deleted")
        check_annotate(space, value)
        if self.host is not None:
            return False
        space.mark_mutated(self)
        if value.force().cls is not type(None):
            self.annotations = None
        self.annotate = value
        return True

    def set_part(self, space: Space, flag: int, value: Value) -> None:
        """One of MAKE_FUNCTION's parts: 1 and 2 defaults, 4 annotations, 8 closure, 16 `__annotate__`."""
        if flag == 1:
            self._defaults = space.unpack(value)
        elif flag == 2:
            self._kwdefaults = value.force().str_items(space)  # type: ignore[attr-defined]
        elif flag == 4:
            self.annotations = self._annotations_dict(space, value)
        elif flag == 16:
            self.annotate = value
        else:
            self._cells = [cell.force() for cell in space.unpack(value)]  # type: ignore[misc]

    def _annotations_dict(self, space: Space, value: Value) -> Value:
        if value.force().cls is not tuple:
            return value
        flat = space.unpack(value)
        return space.new_dict(list(zip(flat[::2], flat[1::2], strict=True)))

    # -- tp_call, tp_descr_get --------------------------------------------------------------------------------------

    def call(self, space: Space, args: list[Value], kwargs: dict[str, Value], in_tail_position: bool) -> Value:
        if self.host is not None:
            handler = handler_of(self.host) or space.trace.extension(Intercepted).model_of(self.host)
            if handler is not None:
                space.guard_identity_of(self.source, self.host)
                result = handler(space, args, kwargs)
                if type(result) is TailCall:
                    return space.call(result.function, result.args, result.kwargs, in_tail_position)
                if result is not None:
                    return result
        return self.inline(space, args, kwargs, in_tail_position)

    def inline(self, space: Space, args: list[Value], kwargs: dict[str, Value], in_tail_position: bool) -> Value:
        """Trace into the function, whether or not it has a model."""
        if self.host is not None:
            self.guard_code(space)
        try:
            bound = self.bind(space, args, kwargs)
        except Mismatch:
            raise self._mismatch(space, args, kwargs) from None
        return space.trace.calls.inline(self, bound, in_tail_position)

    def bind(self, space: Space, args: list[Value], kwargs: dict[str, Value]) -> dict[str, Value]:
        """Parameter name → value; raises Mismatch."""
        return bind(space, self.code, args, kwargs, partial(self.defaults, space), partial(self.kwdefault, space))

    def guard_code(self, space: Space) -> None:
        """The trace depends on what the function's code is."""
        if not runs_its_code(self.host):
            raise Unsupported(
                errors.UnsupportedObject(f"the function {self.qualname}, whose calls C code has replaced,")
            )
        if self._guarded is not self.code:
            self._guarded = self.code
            if self.source is not None and type(self.source) is not FunctionSource:
                space.trace.guard(CodeIs(self.source, self.code, self.globals))

    def _mismatch(self, space: Space, args: list[Value], kwargs: dict[str, Value]) -> Raised:
        """CPython words the TypeError: the same signature, called with as many nothings, never runs its body."""
        defaults = tuple(None for _ in self.defaults(space))
        cells = tuple(types.CellType() for _ in self.code.co_freevars)
        function = types.FunctionType(self.code, {}, self.code.co_name, defaults, cells)
        function.__qualname__ = space.str_(space.getattr(self, "__qualname__"))
        names = self.code.co_varnames[self.code.co_argcount :][: self.code.co_kwonlyargcount]
        function.__kwdefaults__ = {n: None for n in names if self.kwdefault(space, n) is not None}
        try:
            function(*[None] * len(args), **dict.fromkeys(kwargs))
        except TypeError as e:
            return Raised(space.exception(e))
        raise AssertionError("bind refused arguments that CPython accepts")

    @property
    def qualname(self) -> str:
        return plain_name(self.host) if self.host is not None else self.code.co_qualname

    # -- host and residual ------------------------------------------------------------------------------------------

    def as_host(self, space: Space) -> types.FunctionType:
        if self.host is None or self.fields:
            return super().as_host(space)  # type: ignore[no-any-return]
        space.guard_identity_of(self.source, self.host)
        return self.host  # type: ignore[no-any-return]

    def describe(self) -> str:
        return f"function {self.qualname}"

    def rebuilt(self, writer: Writer) -> str:
        empty = [cell for cell in self._cells or () if cell.source is None and not writer.is_made(cell)]
        closure = [
            writer.expr(c) if c.source is not None or writer.is_made(c) else writer.early(c) for c in self._cells or ()
        ]
        made = writer.shell_of(self)
        if made is not None:
            return made
        parts = [writer.const(self.code), writer.globals(self.globals), writer.expr(self.fields["__name__"])]
        parts.append("None")
        if closure:
            parts.append(_tuple_text(closure))
        make: Any = types.FunctionType if "__builtins__" in self.globals else _with_usual_builtins
        name = writer.assign(self.code.co_name, f"{writer.const(make)}({', '.join(parts)})")
        writer.name_value(self, name)
        if self._defaults:
            # Like the closure, they may refer to the function.
            writer.line(f"{name}.__defaults__ = {_tuple_text([writer.expr(v) for v in self._defaults])}")
        for cell in empty:
            cell.fill(writer)
        for line in self._finishing(writer, name):
            writer.line(line)
        return name

    def _finishing(self, writer: Writer, name: str) -> list[str]:
        lines = [f"{name}.{field} = {writer.expr(v)}" for field, v in self.fields.items() if field != "__name__"]
        if self._kwdefaults:
            pairs = ", ".join(f"{k!r}: {writer.expr(v)}" for k, v in self._kwdefaults.items())
            lines.append(f"{name}.__kwdefaults__ = {{{pairs}}}")
        if self.annotate is not None:
            if self.annotations is not None and self.annotate.force().cls is not type(None):
                raise Unsupported(errors.NotReconstructible("a function whose annotations have been evaluated"))
            lines.append(f"{name}.__annotate__ = {writer.expr(self.annotate)}")
        if self.annotations is not None:
            lines.append(f"{name}.__annotations__ = {writer.expr(self.annotations)}")
        if self._attrs is not None:
            lines += self._attrs.lines(writer, name)
        return lines

    def effects(self, writer: Writer) -> list[str]:
        assert self.source is not None
        name = writer.source(self.source)
        return [f"{name}.{field} = {writer.expr(v)}" for field, v in self.fields.items()]


def _check_parts(space: Space, parts: list[Value], more: dict[str, Value]) -> None:
    """Let CPython make a function of the same kinds of things: it words the error."""
    *hosts, closure = [space.sample(part) for part in parts]
    if parts[4].isa(tuple):
        items = [item.force() for item in space.unpack(parts[4])]
        closure = tuple(types.CellType() if isinstance(item, CellValue) else space.sample(item) for item in items)
    with host_errors(space, TypeError, ValueError):
        function: Callable[..., object] = types.FunctionType
        function(*hosts, closure, **{key: space.sample(v) for key, v in more.items()})


def _with_usual_builtins(*parts: Any) -> types.FunctionType:
    """`types.FunctionType(…)` with globals that name no builtins: it takes those of the frame that calls it."""
    return types.FunctionType(*parts)


def _tuple_text(parts: list[str]) -> str:
    return f"({', '.join(parts)},)" if parts else "()"
