"""What functions, classes and modules of random programs are made of; `expressions` says how templates read."""

from __future__ import annotations


def _parts(text: str) -> list[str]:
    """What blank lines separate."""
    return [part.strip("\n") for part in text.split("\n\n")]


#: Statements of one line; `$def` is a nested function.
SIMPLE = """\
$new_int = $int
$new_list = $list
$new_any = $any
print($any)
LOG.append($any)
$old_int $fold $int
$old_any = $any
$list.append($int)
$list.extend($list[:3])
$list[$int] = $any
$list[$int:$int] = $list[:3]
del $list[$int]
del $list[$int:$int]
$list.insert($int, $int)
$^list.sort(key=lambda @int: $int)
$old_list += $tuple[:3]
$dict[$str] = $any
$dict[$str] $fold $int
del $dict[$str]
$dict.update($dict)
$dict.update(a=$int)
$set.add($int)
$set.discard($int)
$set.update($list)
$object.x = $int
$object.x $fold $int
$object.items.append($int)
$object.$attribute = $any
del $object.$attribute
setattr($object, '$attribute', $any)
$object[$int] = $int
$classname.count += 1
$classname.shared = $any
$function.note = $int
$function.__defaults__ = ($int,)
COUNT += $int
COUNT = $any
TABLE[$str] = $any
$new_int, $new_any = $tuple
$new_int, *$new_list = $list
$new_any, ($new_int, $new_any) = $any, $tuple
$old_any, $old_any = $any, $any
$new_any = $new_any = $any
del $old_any
$any
assert $bool, $str
raise $exception($str)
raise $exception($any) from None
raise $exception($int) from $exc
raise $exc
raise ExceptionGroup('group', [$exception($int), $exception($str)])
$exc.add_note($str)
$def
""".splitlines()

#: Statements with blocks.
COMPOUND = _parts("""
if $bool:
    $block

if $any:
    $block
else:
    $block

if $bool:
    $block
elif $bool:
    $block
else:
    $block

for @int in $^list:
    $loop

for @int in $^list:
    $loop
else:
    $block

for @str in $^dict:
    $loop

for @str, @int in $^dict.items():
    $loop

for @int, @any in enumerate($^list):
    $loop

for @int in range($^int % 4):
    $loop

for @any in $^iterator:
    $loop

for @int, @any in zip(range(4), $^list):
    $loop

for @int in $^set:
    $loop

for @any in $^object:
    $loop

for @any in $^generator:
    $loop

@int = 0
while @int < 3 and $bool:
    @int += 1
    $loop

@int = 3
while @int:
    @int -= 1
    $loop
else:
    $block

try:
    $block
except $handled:
    $block

try:
    $block
except $handled as @exc:
    $block

try:
    $block
except $handled as @exc:
    $block
    raise

try:
    $block
except $handled as @exc:
    $block
    raise $exception($str) from @exc

try:
    $block
except $handled as @exc:
    $block
except $handled:
    $block
else:
    $block

try:
    $block
finally:
    $block

try:
    $block
except $handled as @exc:
    $block
finally:
    $block

try:
    $block
except* $exception as @exc:
    $group
except* Exception:
    $group

with $^object as @any:
    $block

with $object:
    $block

with $^cm as @int:
    $block

with contextlib.suppress($handled):
    $block

with $cm as @int, $^object as @any:
    $block

match $any:
    case 0 | 'a':
        $block
    case [@int, *@list]:
        $block
    case _:
        $block

match $any:
    case {'a': @any, **@dict}:
        $block
    case (1, @any) if $bool:
        $block

match $any:
    case int(@int) | str(@int):
        $block
    case None | []:
        $block

match $object:
    case $classname(x=@int):
        $block
    case $classname(@int, items=[*@list]):
        $block

match $list:
    case []:
        $block
    case [@int]:
        $block
    case [@int, _, *@list] as @any:
        $block
""")

#: What may stand in a generator besides.
GENERATOR = _parts("""
yield $any

$new_any = yield $int

yield from $list

$new_any = yield from $iterator

try:
    yield $int
except $handled as @exc:
    $block

try:
    yield $int
finally:
    $block
""")

#: What may stand in a loop, and in a function.
LOOP = ["break", "continue", "if $bool:\n    break", "if $bool:\n    continue"]
RETURN = ["return $any", "if $bool:\n    return $any"]
#: What a program does with an iterator in its hands.
CONSUMERS = ["$iterator.send($any)", "$generator.throw($exception($int))", "$generator.close()", "next($iterator)"]

#: Calls of what would be a helper, where there can be no more of them.
SPARE = {"function": "max($int, $int)", "generator": "iter($list)", "cm": "contextlib.nullcontext($int)"}
#: Signatures of helper functions, with the calls that fit.
SIGNATURES: list[tuple[str, dict[str, str], list[str]]] = [
    ("n", {"n": "int"}, ["($int)", "(n=$int)"]),
    ("n, items=[]", {"n": "int", "items": "list"}, ["($int)", "($int, $list)", "(items=$list, n=$int)"]),
    ("n, *rest", {"n": "int", "rest": "tuple"}, ["($int)", "($int, $any)", "(*$list)", "($int, *$tuple)"]),
    (
        "n, *, key=3, **named",
        {"n": "int", "key": "int", "named": "dict"},
        ["($int)", "($int, key=$int)", "(3, **$dict)"],
    ),
    ("n, /, m=2", {"n": "int", "m": "int"}, ["($int)", "($int, m=$int)", "(n=$int)"]),
    ("value, where={}", {"value": "any", "where": "dict"}, ["($any)", "($any, $dict)", "(value=$any)"]),
]

#: Members of a class, after `__init__`; `self.x` is an int, `self.items` a list, and a line of # a blank one.
MEMBERS = _parts("""
def __eq__(self, other):
    return isinstance(other, $this) and self.x == other.x
#
def __hash__(self):
    return hash(self.x)

def method(self, n=1):
    return $int

@property
def total(self):
    return $int

@property
def total(self):
    return self.x
#
@total.setter
def total(self, value):
    self.x = value

def __getattr__(self, name):
    if name.startswith('__'):
        raise AttributeError(name)
    return len(name)

def __len__(self):
    return len(self.items)

def __bool__(self):
    return $bool

def __iter__(self):
    return iter(self.items)

def __iter__(self):
    yield self.x
    yield from self.items

def __contains__(self, n):
    return $bool

def __getitem__(self, n):
    return self.items[n]

def __setitem__(self, n, value):
    self.items[n] = value

def __call__(self, n):
    self.x += 1
    return $int

def __add__(self, n):
    return $any

def __radd__(self, n):
    return self.x + n

def __lt__(self, other):
    return self.x < other.x

def __repr__(self):
    return f'$this({self.x})'

def __enter__(self):
    LOG.append('enter')
    return $any

def __exit__(self, kind, error, traceback):
    LOG.append(kind)
    return $bool

@classmethod
def make(cls, n):
    cls.count += 1
    return cls(n)

@staticmethod
def helper(n):
    return n

def __setattr__(self, name, value):
    LOG.append(name)
    object.__setattr__(self, name, value)

def __delattr__(self, name):
    object.__delattr__(self, name)
    LOG.append(name)

def __index__(self):
    return self.x

def __format__(self, spec):
    return f'<{self.x}>'

@property
def itself(self):
    return self

def __iadd__(self, n):
    self.items.append(n)
    return self

def __next__(self):
    if len(self.items) < 2:
        raise StopIteration(self.x)
    return self.items.pop()

label = Described()

def __init_subclass__(cls, **named):
    LOG.append(cls.__name__)
""")

HEADS = ["class $this:", "class $this(Base):", "class $this($parent):", "class $this(list):", "class $this(dict):"]
SLOTS = "__slots__ = ('x', 'items', 'other')"

#: What comes first in the module, where the program speaks of it.
PRELUDE: list[tuple[str, str]] = [
    ("torch", "import torch\n"),
    (
        "",
        """\
import collections, contextlib, copy, functools, itertools, math, operator, types

COUNT = 0
LOG = []
TABLE = {}
""",
    ),
    (
        "Oops",
        """

class Oops(ValueError):
    pass
""",
    ),
    (
        "Base",
        """

class Base:
    count = 0
    shared = []
""",
    ),
    (
        "Pair",
        """

Pair = collections.namedtuple("Pair", "first second", defaults=(0,))
""",
    ),
    (
        "Record",
        """

import dataclasses

@dataclasses.dataclass(order=True)
class Record:
    x: int
    items: list = dataclasses.field(default_factory=list)
""",
    ),
    (
        "Plain",
        """

class Plain:
    def __init__(self, x=1, items=None):
        self.x = x
        self.items = [x, 2] if items is None else items
""",
    ),
    (
        "Described",
        """

class Described:
    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, instance, owner):
        return self.name if instance is None else f"{self.name} of {instance.x}"
""",
    ),
    (
        "advanced",
        """

def advanced(iterator):
    next(iterator, None)
    return iterator
""",
    ),
]
