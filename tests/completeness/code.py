"""Functions, classes, descriptors, modules and what else runs code: how two of them differ."""

from __future__ import annotations

import collections
import functools
import types
from typing import Any

from tests.completeness.containers import changes, of
from tests.completeness.runner import Kind

HEADER = "import functools, enum, weakref, types\n__name__ = 'factories'\n"


#: what the factories made last: what a weak reference leads to must not die
KEPT: collections.deque[dict[str, Any]] = collections.deque(maxlen=500)


def made(source: str, **names: Any) -> Any:
    """The object `o` of a module made anew."""
    space: dict[str, Any] = dict(names)
    exec(_compiled(HEADER + source), space)
    KEPT.append(space)
    return space["o"]


@functools.cache
def _compiled(source: str) -> types.CodeType:
    return compile(source, "<factory>", "exec")


def maker(source: str, **names: Any) -> Any:
    return functools.partial(made, source, **names)


def other(kind: str, *pairs: tuple[str, str]) -> dict[str, Any]:
    """Variants: the source with one text replaced by another."""
    return {f"{new} for {old}": maker(kind.replace(old, new)) for old, new in pairs}


FUNCTION = """
def enclosing(cell):
    def o(a=1, b=2, *, c=3) -> int:
        "doc"
        return a, b, c, cell, LEVEL
    return o
LEVEL = 7
o = enclosing(4)
def spare():
    cell = 0
    return lambda *args: (cell, 'spare')
o.spare = spare().__code__ if o.__closure__ else o.__code__
"""
FUNCTION_CHANGES = changes(
    "o.__code__ = o.spare",
    "o.__defaults__ = (5, 6)",
    "o.__defaults__ = None",
    "o.__kwdefaults__ = {'c': 9}",
    "o.__kwdefaults__['c'] = 8",
    "o.__kwdefaults__ = None",
    "o.__name__ = 'n'",
    "o.__qualname__ = 'q'",
    "o.__doc__ = 'other'",
    "o.__doc__ = None",
    "o.__module__ = 'm'",
    "o.tag = 1",
    "o.__dict__ = {'tag': 2}",
    "o.__annotations__['a'] = int",
    "o.__annotations__ = {}",
    "o.__closure__[0].cell_contents = 5",
    "del o.__closure__[0].cell_contents",
    "o.__globals__['LEVEL'] = 8",
    "del o.__globals__['LEVEL']",
    "o.__globals__['__builtins__'] = {}",
    "o.__type_params__ = (1,)",
)
METHOD = """
class C:
    "doc"
    def m(self, *args): "doc of m"; return self.x, args
    def __init__(self): self.x = 1
    def __eq__(self, other): return isinstance(other, C) and self.x == other.x
    __hash__ = None
o = C().m
"""
CLASS = """
class Meta(type):
    level = 1
class Base(metaclass=Meta):
    inherited = 1
    def greet(self): return self.inherited
class o(Base):
    "doc"
    x: int = 1
    def m(self): return self.x
    @property
    def p(self): return self.x + 1
    @classmethod
    def c(cls): return cls.x
    @staticmethod
    def s(): return 's'
"""
CLASS_CHANGES = changes(
    "o.x = 2",
    "del o.x",
    "o.inherited = 3",
    "o.__bases__[0].inherited = 4",
    "o.tag = 5",
    "type(o).level = 6",
    "type(o).tag = 7",
    "o.__name__ = 'n'",
    "o.__qualname__ = 'q'",
    "o.__module__ = 'm'",
    "o.__doc__ = 'd'",
    "o.__annotations__['y'] = int",
    "o.m = lambda self: 3",
    "o.m.__code__ = (lambda self: 4).__code__",
    "o.__bases__[0].greet.__code__ = (lambda self: 4).__code__",
    "o.p = property(lambda self: 0)",
    "o.p.fget.__code__ = (lambda self: 4).__code__",
    "o.c = classmethod(lambda cls: 0)",
    "o.__dict__['c'].__func__.__code__ = (lambda cls: 4).__code__",
    "o.s = staticmethod(lambda: 0)",
    "o.s.__code__ = (lambda: 4).__code__",
    "o.__new__ = lambda cls, *args: 8",
    "o.__init__ = lambda self, *args: None",
    "o.__abstractmethods__ = frozenset(['z'])",
    "o.__bases__ = (type('B', (o.__bases__[0],), {'__module__': MODULE, 'inherited': 9}),)",
    "type(o).__call__ = lambda cls, *args: 9",
    "type(o).__repr__ = lambda cls: 'r'",
    "o.__subclass = type('S', (o,), {'__module__': MODULE})",
    "type(o).__len__ = lambda cls: 3",
    "type(o).__bool__ = lambda cls: False",
    "type(o).__iter__ = lambda cls: iter('ab')",
    "o.__len__ = lambda self: 2",
    "type(o).__getattr__ = lambda cls, name: name",
    "o.__class__ = type('M', (type(o),), {'level': 8})",
    "type(o).__getitem__ = lambda cls, i: 'ab'[i]",
    "o.__class_getitem__ = lambda i: i",
    "o.__hash__ = None",
    "o.__repr__ = lambda self: 'r'",
    "o.__type_params__ = (1,)",
    "type(o).__prepare__ = lambda *args: 3",
    "type(o).__dir__ = lambda cls: ['z']",
    "type(o).__instancecheck__ = lambda cls, i: True",
    "type(o).mro = lambda cls: 3",
    "o.__static_attributes__ = (1,)",
    "o.__firstlineno__ = 3",
    "o.__init_subclass__ = 3",
    "o.__subclasshook__ = 4",
    "o.__sizeof__ = 4",
    "o.__dir__ = 3",
    "o.__reduce__ = 3",
    "o.__str__ = 3",
    "o.__getstate__ = 3",
    "o.__setattr__ = 3",
    "o.__eq__ = 3",
    "o.__weakref__ = 3",
    "o.__annotate__ = None",
)
SLOTS = "class o:\n    {body}\n"
INSTANCE = (
    CLASS.replace("class o(", "class K(")
    + """
    def __init__(self): self.y = 2
    def __getattr__(self, name):
        if name == 'computed': return 'c'
        raise AttributeError(name)
o = K()
"""
)
INSTANCE_CHANGES = changes(
    "o.x = 2",
    "o.y = 3",
    "del o.y",
    "o.m = lambda: 3",
    "o.tag = 4",
    "o.__dict__ = {'y': 9}",
    "vars(o)['y'] = 8",
    "type(o).x = 3",
    "type(o).p = property(lambda self: 0)",
    "type(o).p.fget.__code__ = (lambda self: 4).__code__",
    "type(o).m = lambda self: 3",
    "type(o).m.__code__ = (lambda self: 4).__code__",
    "type(o).tag = 5",
    "type(o).__bases__[0].inherited = 4",
    "type(o).__bases__[0].greet = lambda self: 4",
    "type(o).__doc__ = 'd'",
    "type(o).__bases__[0].greet.__code__ = (lambda self: 4).__code__",
    "type(o).c = classmethod(lambda cls: 0)",
    "type(o).s = staticmethod(lambda: 0)",
    "type(o).__dict__['s'].__func__.__code__ = (lambda: 4).__code__",
    "type(o).__getattr__ = lambda self, name: name",
    "type(o).__getattr__.__code__ = (lambda s, n: n).__code__",
    "type(o).__getattribute__ = lambda self, name: 6",
    "type(o).__len__ = lambda self: 3",
    "type(o).__bool__ = lambda self: False",
    "type(o).__iter__ = lambda self: iter('ab')",
    "type(o).__call__ = lambda self, *args: 9",
    "type(o).__repr__ = lambda self: 'r'",
    "type(o).__getitem__ = lambda self, i: 'ab'[i]",
    "type(o).__contains__ = lambda self, i: i == 1",
    "type(o).__next__ = lambda self: 1",
    "type(o).__reversed__ = lambda self: iter('ba')",
    "type(o).__module__ = 'm'",
    "o.__class__ = type('K', (type(o),), {'__module__': MODULE, 'x': 7, 'm': lambda self: 8})",
    "type(o).__bases__ = (type('B', (type(o).__bases__[0],), {'__module__': MODULE, 'inherited': 9}),)",
    "type(o).y = property(lambda self: 'shadow')",
    "type(o).__annotations__['q'] = int",
    "type(o).__eq__ = lambda *a: 5",
    "type(o).__dir__ = lambda self: ['z']",
    "type(o).__class__ = type('M', (type(type(o)),), {})",
)
PROPERTY = """
def get(self): "doc"; return 1
def put(self, value): pass
o = property(get)
"""
WRAPPERS = """
def target(*args): "doc"; return 'first', len(args)
def second(*args): return 'second'
"""
PARTIAL = WRAPPERS + "\no = functools.partial(target, 1, k=2) if False else functools.partial(target, 1)\n"
CACHED = """
class C:
    def get(self): return 1
    value = functools.cached_property(get)
o = C.__dict__['value']
"""
MEMBER = "class C:\n    __slots__ = ('a', 'b')\no = C.__dict__['a']\n"
MODULE_SOURCE = """
o = types.ModuleType('mod', 'doc')
o.x = 1
o.f = lambda *args: 'f'
"""
GENERATOR = """
def counting(n):
    for i in range(n):
        got = yield i
def echo(n):
    yield from [n, n]
    return 'end'
o = counting(2)
"""
EXCEPTION = "class E(ValueError):\n    x = 1\no = E('a', 1)\n"
WEAK = """
class C:
    x = 1
    def __eq__(self, other): return isinstance(other, C) and self.x == other.x
    __hash__ = None
def called(ref): pass
held = C()
o = weakref.ref(held)
called.held = held
"""
ENUM = """
class Color(enum.Enum):
    RED = 1
    BLUE = 2
    def m(self): return self.value
o = Color.RED
"""
CODE_CHANGES = {
    "co_argcount": 2,
    "co_code": None,
    "co_consts": (None, 5),
    "co_filename": "elsewhere",
    "co_firstlineno": 9,
    "co_flags": 3 | 0x100,
    "co_linetable": b"",
    "co_name": "n",
    "co_names": ("other",),
    "co_qualname": "q",
    "co_stacksize": 30,
    "co_varnames": ("z",),
    "co_exceptiontable": b"\0",
    "co_kwonlyargcount": 1,
    "co_posonlyargcount": 1,
    "co_nlocals": 3,
    "co_cellvars": ("c",),
    "co_freevars": ("f",),
}


def code_variants() -> dict[str, Any]:
    def f(a: Any) -> Any:
        return a.x

    made: dict[str, Any] = {}
    for name, value in CODE_CHANGES.items():
        if value is None or name == "co_nlocals":
            continue
        try:
            made[name] = functools.partial(f.__code__.replace, **{name: value})
            made[name]()
        except ValueError:  # two fields that must agree
            del made[name]
    sources = ("lambda a, b: a", "lambda *a: a", "lambda a, /: a", "lambda a, *, k: a", "lambda a: lambda: a")
    made |= {text: functools.partial(getattr, eval(text), "__code__") for text in sources}
    made["free"] = lambda: (lambda free: lambda: free)(1).__code__
    return made


CALLABLES = [
    Kind(
        "function",
        maker(FUNCTION),
        FUNCTION_CHANGES,
        other(
            FUNCTION,
            ("a=1", "a=0"),
            ("'spare'", "'other'"),
            ("-> int", ""),
            ("return o", "return lambda: 1"),
            ("LEVEL = 7", "LEVEL = 6"),
        )
        | {"builtins": maker(FUNCTION, __builtins__={"__import__": __import__, "int": int})},
        queries=("o.spare", "o.__code__.co_name", "o.__closure__[0].cell_contents", "o.__globals__['LEVEL']"),
    ),
    Kind(
        "bound method",
        maker(METHOD),
        changes(
            "o.__self__.x = 2",
            "o.__func__.__code__ = (lambda *args: 3).__code__",
            "o.__func__.__name__ = 'n'",
            "o.__func__.__qualname__ = 'q'",
            "o.__func__.__doc__ = 'd'",
            "o.__func__.__module__ = 'm'",
            "o.__func__.tag = 1",
            "o.__func__.__defaults__ = (1,)",
            "o.__func__.__kwdefaults__ = {'k': 1}",
            "o.__func__.__annotations__['a'] = int",
            "type(o.__self__).__repr__ = lambda self: 'r'",
        ),
        other(METHOD, ("self.x, args", "args"), ("C().m", "type('D', (C,), {}).m.__get__(C())")),
    ),
    Kind(
        "class",
        maker(CLASS),
        CLASS_CHANGES,
        other(
            CLASS,
            ("x: int = 1", "__slots__ = ('z',)"),
            ("(Base)", "(Base, dict)"),
            ("class o(Base)", "class o(Base, tuple)"),
            ("class o(Base)", "class o(Base, BaseException)"),
        ),
        queries=("o().x", "o().m()", "o().p", "o().greet()", "o.x", "type(o).level", "isinstance(1, o)"),
        constant={"of classes written in C": "__text_signature__"},
    ),
    Kind(
        "instance",
        maker(INSTANCE),
        INSTANCE_CHANGES,
        queries=("o.computed", "o.p", "o.m()", "o.x", "o.y", "o.tag", "type(o).x", "o.__class__.__name__"),
    ),
    Kind(
        "property",
        maker(PROPERTY),
        changes(
            "o.__doc__ = 'd'",
            "o.fget.__code__ = (lambda self: 2).__code__",
            "o.fget.__isabstractmethod__ = True",
            "o.fget.tag = 1",
            "o.fget.__name__ = 'n'",
        ),
        other(
            PROPERTY,
            ("property(get)", "property(get, put)"),
            ("property(get)", "property(get, None, put)"),
            ("property(get)", "property(put)"),
            ("property(get)", "property()"),
        ),
        queries=("o.fget(1)", "o.__get__(1)"),
    ),
    Kind(
        "classmethod",
        maker(WRAPPERS + "o = classmethod(target)"),
        changes(
            "o.tag = 1",
            "o.__func__.__code__ = (lambda *a: 2).__code__",
            "o.__func__.__isabstractmethod__ = True",
            "o.__doc__ = 'd'",
            "o.__name__ = 'n'",
            "o.__qualname__ = 'q'",
            "o.__module__ = 'm'",
            "o.__annotations__ = {}",
            "o.__func__.__annotations__['a'] = int",
        ),
        other(WRAPPERS + "o = classmethod(target)", ("classmethod(target)", "classmethod(second)")),
        queries=("o.__get__(None, int)()", "o.__func__()"),
    ),
    Kind(
        "staticmethod",
        maker(WRAPPERS + "o = staticmethod(target)"),
        changes(
            "o.tag = 1",
            "o.__func__.__code__ = (lambda *a: 2).__code__",
            "o.__func__.__isabstractmethod__ = True",
            "o.__doc__ = 'd'",
            "o.__name__ = 'n'",
            "o.__qualname__ = 'q'",
            "o.__module__ = 'm'",
            "o.__annotations__ = {}",
            "o.__func__.__annotations__['a'] = int",
        ),
        other(WRAPPERS + "o = staticmethod(target)", ("staticmethod(target)", "staticmethod(second)")),
        queries=("o.__get__(None, int)()", "o.__func__()"),
    ),
    Kind(
        "cached_property",
        maker(CACHED),
        changes(
            "o.attrname = 'other'",
            "o.func = lambda self: 2",
            "o.func.__code__ = (lambda self: 2).__code__",
            "o.__doc__ = 'd'",
            "o.tag = 1",
            "o.lock = 3",
            "o.__module__ = 'm'",
        ),
        queries=("o.__get__(types.SimpleNamespace())",),
    ),
    Kind(
        "member descriptor",
        maker(MEMBER),
        variants={},
        changes=changes("o.__objclass__.__name__ = 'D'", "o.__objclass__.__qualname__ = 'D'"),
        constant={"the descriptor's own": "__name__"},
    ),
    Kind(
        "partial",
        maker(PARTIAL),
        changes=changes(
            "o.tag = 1",
            "o.keywords['k'] = 2",
            "o.func.__code__ = (lambda *a, **k: k).__code__",
            "o.__setstate__((o.func, (1, 2), {}, None))",
            "o.__setstate__((len, o.args, {}, None))",
        ),
        variants=other(
            PARTIAL, ("partial(target, 1)", "partial(target, 2)"), ("partial(target, 1)", "partial(second)")
        ),
    ),
    Kind(
        "module",
        maker(MODULE_SOURCE),
        changes(
            "o.x = 2",
            "del o.x",
            "o.__name__ = 'n'",
            "o.__doc__ = 'd'",
            "o.tag = 1",
            "o.__package__ = 'p'",
            "o.__getattr__ = lambda name: name",
            "o.f = lambda *args: 'g'",
            "o.__loader__ = 1",
            "o.__spec__ = 1",
            "o.f.__code__ = (lambda *a: 3).__code__",
            "o.__annotations__ = {'a': 1}",
            "vars(o)['x'] = 9",
            "o.__dir__ = lambda: ['z']",
            "o.__path__ = ['p']",
            "o.__file__ = 'file'",
            "o.__class__ = type('M', (type(o),), {'__module__': MODULE, 'tag': 3, '__call__': lambda s, *a: 4})",
        ),
        queries=("o.f()", "o.x", "o.__path__", "o.__file__"),
    ),
    Kind(
        "generator",
        maker(GENERATOR),
        changes("next(o)", "list(o)", "o.close()", "o.__name__ = 'n'", "o.__qualname__ = 'q'"),
        other(
            GENERATOR,
            ("o = counting(2)", "o = counting(1)"),
            ("o = counting(2)", "o = echo(2)"),
            ("o = counting(2)", "o = echo(2); next(o)"),
        ),
    ),
    Kind(
        "cell",
        lambda: types.CellType(1),
        changes("o.cell_contents = 2", "del o.cell_contents", "o.cell_contents = True", "o.cell_contents = [1]"),
    ),
    Kind(
        "code",
        functools.partial(getattr, lambda a: a.x, "__code__"),
        variants=code_variants(),
        queries=("[*o.co_lines()]", "[*o.co_positions()]"),
        constant={
            "what it is specialised to": "_co_code_adaptive",
            "asked as lists": "co_lines co_positions co_branches",
        },
    ),
    Kind(
        "exception",
        maker(EXCEPTION),
        changes=changes(
            "o.args = (1,)",
            "o.args = ()",
            "o.__cause__ = KeyError(1)",
            "o.__context__ = KeyError(1)",
            "o.__suppress_context__ = True",
            "o.add_note('n')",
            "o.tag = 1",
            "type(o).x = 2",
            "type(o).__str__ = lambda self: 's'",
            "o.__class__ = type('F', (type(o),), {'__module__': MODULE, 'x': 4})",
            "o.__setstate__({'tag': 3})",
            "type(o).__module__ = 'm'",
            "type(o).__doc__ = 'd'",
            "exec('try: raise o\\nexcept Exception: pass')",
        ),
        queries=("o.__notes__", "o.x", "o.__traceback__ is None"),
    ),
    Kind(
        "OSError",
        lambda: OSError(2, "no file", "name"),
        changes=changes(
            "o.errno = 3", "o.strerror = 's'", "o.filename = 'f'", "o.filename2 = 'g'", "o.characters_written = 3"
        ),
        constant={
            "BaseException's": "__cause__ __context__ __suppress_context__ __traceback__ args",
            "raises": "characters_written",
        },
    ),
    Kind(
        "StopIteration",
        lambda: StopIteration(1),
        changes("o.value = 2", "o.args = (3,)"),
        constant={"BaseException's": "__cause__ __context__ __suppress_context__ __traceback__"},
    ),
    Kind(
        "ImportError",
        lambda: ImportError("m", name="n", path="p"),
        changes("o.name = 2", "o.path = 3", "o.msg = 'x'", "o.name_from = 'y'"),
        constant={"BaseException's": "__cause__ __context__ __suppress_context__ __traceback__ args"},
    ),
    Kind(
        "AttributeError",
        lambda: AttributeError("m", name="n", obj=1),
        changes("o.name = 2", "o.obj = 3"),
        constant={"BaseException's": "__cause__ __context__ __suppress_context__ __traceback__ args"},
    ),
    Kind(
        "UnicodeDecodeError",
        lambda: UnicodeDecodeError("utf8", b"ab", 0, 1, "r"),
        changes("o.encoding = 'x'", "o.start = 1", "o.end = 2", "o.reason = 'q'", "o.object = b'c'"),
        constant={"BaseException's": "__cause__ __context__ __suppress_context__ __traceback__ args"},
    ),
    Kind(
        "SyntaxError",
        lambda: SyntaxError("m", ("f", 1, 2, "t")),
        changes(
            "o.msg = 'x'",
            "o.filename = 'g'",
            "o.lineno = 4",
            "o.offset = 5",
            "o.text = 'u'",
            "o.end_lineno = 6",
            "o.end_offset = 7",
            "o.print_file_and_line = 8",
        ),
        constant={
            "BaseException's": "__cause__ __context__ __suppress_context__ __traceback__ args",
            "by the parser only": "_metadata",
        },
    ),
    Kind(
        "ExceptionGroup",
        lambda: ExceptionGroup("m", [ValueError(1)]),
        changes("o.exceptions[0].args = (2,)"),
        of("ExceptionGroup('n', [ValueError(1)])", "ExceptionGroup('m', [KeyError(1)])"),
        constant={"BaseException's": "__cause__ __context__ __suppress_context__ __traceback__"},
    ),
    Kind(
        "weakref",
        maker(WEAK),
        changes("o().x = 2", "type(o()).x = 3"),
        other(WEAK, ("ref(held)", "ref(held, called)"), ("called.held = held", "held = None")),
        constant={"the default hash of the object": "__hash__"},
        queries=("o().x",),
    ),
    Kind(
        "enum member",
        maker(ENUM),
        changes(
            "o._value_ = 5",
            "o._name_ = 'N'",
            "o.tag = 1",
            "o.m = lambda: 4",
            "type(o).m = lambda self: 3",
            "type(o).m.__code__ = (lambda self: 4).__code__",
            "type(o).tag = 2",
            "o._sort_order_ = 7",
            "type(o).__doc__ = 'd'",
            "type(o).__module__ = 'm'",
            "o.__objclass__ = 3",
            "type(o).__len__ = lambda self: 3",
            "type(o).__str__ = lambda self: 's'",
        ),
        other(ENUM, ("o = Color.RED", "o = Color.BLUE"), ("RED = 1", "RED = 3")),
        constant={"the class's only": "__contains__ __getitem__ __members__ __name__ __qualname__"},
        queries=("o.m()", "o is type(o).RED", "type(o)(2)", "list(type(o))"),
    ),
]
