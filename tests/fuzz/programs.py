"""Writes random programs: modules with a function `program` and the arguments of its calls."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies

from tests.fuzz import expressions, statements, tensor_grammar

KINDS = "|".join([*tensor_grammar.EXPRESSIONS, "any", "exc"])
HOLE = re.compile(rf"\$(\^?)(new_|old_)?([a-z]+)|@({KINDS})\b")
PLAIN = re.compile(r"[A-Za-z_][\w.]*|\([^()]*\)|'[^']*'|\[[^][]*\]")
#: About how many lines a program may have before it is brought to an end.
ENOUGH = 40
INDENT = "    "
CALLS = 3


def program(number: int, tensors: bool = False) -> str:
    """The source of program `number`: helpers, `program(a, …)`, and `calls()`, which yields arguments."""
    rng = random.Random(number)
    return Writer(lambda n: int(rng.random() * n), tensors).module()


@strategies.composite
def programs(draw: Callable[..., int], tensors: bool = False) -> str:
    """The same as a strategy: what is written is hypothesis's choice."""
    return Writer(lambda n: draw(strategies.integers(0, n - 1)), tensors).module()


@dataclass
class Scope:
    """What may be written at one place of a function."""

    names: list[tuple[str, str]] = field(default_factory=list)
    """Visible names, with their types."""
    owned: set[str] = field(default_factory=set)
    """Those of them that are assigned in this very function, or declared nonlocal."""
    depth: int = 0
    loop: bool = False
    group: bool = False
    generator: bool = False
    function: bool = False
    walrus: bool = True


class Writer:
    """Writes one program; `choose(n)` is asked for each choice among n, and says which."""

    def __init__(self, choose: Callable[[int], int], tensors: bool) -> None:
        self.choose = choose
        self.expressions = tensor_grammar.EXPRESSIONS if tensors else expressions.EXPRESSIONS
        self.literals = tensor_grammar.LITERALS if tensors else expressions.LITERALS
        self.simple = tensor_grammar.SIMPLE if tensors else statements.SIMPLE
        self.compound = tensor_grammar.COMPOUND if tensors else statements.COMPOUND
        self.types = tuple(self.expressions)
        self.numbers = itertools.count(1)
        self.lines = 0
        self.definitions: list[str] = []
        self.made: dict[str, list[Any]] = {"function": [], "generator": [], "classname": [], "cm": []}
        self.begun = dict.fromkeys(self.made, 0)
        self.scope = Scope()
        self.pending: list[tuple[str, str]] = []

    # -- choices -----------------------------------------------------------------------------------------------------

    def pick(self, items: Any) -> Any:
        return items[self.choose(len(items))]

    def chance(self, n: int) -> bool:
        """True once in n times."""
        return self.choose(n) == 0

    def fresh(self, stem: str) -> str:
        return f"{stem[0]}{next(self.numbers)}"

    # -- expressions ---------------------------------------------------------------------------------------------------

    def expression(self, kind: str, depth: int = 0) -> str:
        if kind == "any" or (kind in self.expressions and self.chance(40)):
            kind = self.pick(self.types)
        special = getattr(self, f"a_{kind}", None)
        if special is not None:
            return str(special(depth))
        if kind in expressions.MENUS:
            return str(self.pick(expressions.MENUS[kind]))
        if depth > 2 or self.choose(3 + depth) <= depth:
            return self.atom(kind, depth)
        if kind != "object" and self.chance(8):
            return self.a_call(depth)
        template = self.pick(self.expressions[kind])
        if "new_" in template and not self.scope.walrus:
            return self.atom(kind, depth)
        return self.fill(template, depth + 1, nested=True)

    def atom(self, kind: str, depth: int) -> str:
        names = [name for name, of in self.scope.names if of in (kind, "any")]
        if names and self.choose(4):
            return str(self.pick(names[::-1]))
        if kind == "object":
            return f"{self.a_classname(depth)}({self.pick(self.literals['int'])})"
        if kind == "function" and self.made["function"] and self.chance(2):
            return str(self.pick(self.made["function"])[0])
        return str(self.pick(self.literals[kind]))

    def a_exc(self, depth: int) -> str:
        names = [name for name, of in self.scope.names if of == "exc"]
        return str(self.pick(names)) if names and self.choose(5) else self.fill("$exception($int)", depth + 2)

    def a_generator(self, depth: int) -> str:
        names = [name for name, of in self.scope.names if of == "generator"]
        return str(self.pick(names)) if names and self.chance(2) else self.helper_call("generator", depth)

    def a_cm(self, depth: int) -> str:
        return self.helper_call("cm", depth)

    def a_call(self, depth: int) -> str:
        return self.helper_call("function", depth)

    def a_classname(self, depth: int) -> str:
        made = self.made["classname"]
        if self.may_write("classname", 9):
            self.write_class()
        return str(self.pick(made)) if made else "Plain"

    def helper_call(self, kind: str, depth: int) -> str:
        """A call of a helper function, generator or context manager, written first where there is none."""
        made = self.made[kind]
        if self.may_write(kind, 4):
            self.write_helper(kind)
        if not made:
            return self.fill(statements.SPARE[kind], depth + 2, nested=True)
        name, calls = self.pick(made)
        return name + self.fill(self.pick(calls), depth + 2, nested=True)

    def may_write(self, kind: str, rarity: int) -> bool:
        """Whether another helper of the kind is to be written; it counts from when its writing begins."""
        if not self.begun[kind] or (self.begun[kind] < 2 and self.lines < ENOUGH and self.chance(rarity)):
            self.begun[kind] += 1
            return True
        return False

    def fill(self, template: str, depth: int = 0, nested: bool = False, bound: dict[str, str] | None = None) -> str:
        """The template with its holes filled; what it binds is visible in the holes, and forgotten if `nested`."""
        depth = 9 if "f'''" in template else depth
        bound = {} if bound is None else bound
        scope = self.scope
        outer = list(scope.names)
        for kind in (match[4] for match in HOLE.finditer(template) if match[4]):
            if kind not in bound:
                bound[kind] = self.fresh(kind)
                scope.names.append((bound[kind], kind))
                if not nested:
                    scope.owned.add(bound[kind])

        def hole(match: re.Match[str]) -> str:
            outside, how, kind, binder = match.groups()
            if binder:
                return bound[binder]
            if how:
                return self.target(how, kind)
            text = self.outside(kind, depth, outer) if outside else self.expression(kind, depth)
            return text if kind not in self.expressions and kind != "any" or PLAIN.fullmatch(text) else f"({text})"

        text = HOLE.sub(hole, template)
        if nested:
            scope.names[:] = [*outer, *scope.names[len(outer) + len(bound) :]]
        return text

    def outside(self, kind: str, depth: int, names: list[tuple[str, str]]) -> str:
        """An expression in which only `names` are visible: a comprehension's iterable, a default."""
        before = self.scope
        self.scope = replace(before, names=names, walrus=False)
        try:
            return self.expression(kind, depth)
        finally:
            self.scope = before

    def target(self, how: str, kind: str) -> str:
        scope = self.scope
        if how == "old_":
            names = [name for name, of in scope.names if name in scope.owned and kind in (of, "any")]
            if names:
                return str(self.pick(names[::-1]))
        name = self.fresh(kind)
        self.pending.append((name, kind))
        scope.owned.add(name)
        return name

    # -- statements ----------------------------------------------------------------------------------------------------

    def block(self, indent: int, most: int = 3) -> list[str]:
        """One to `most` statements; what they bind is mostly forgotten after them."""
        visible = len(self.scope.names)
        lines = self.statement(indent)
        while most > 1 and self.lines < ENOUGH and self.choose(3):
            lines += self.statement(indent)
            most -= 1
        if not self.chance(4):
            del self.scope.names[visible:]
        return lines

    def statement(self, indent: int) -> list[str]:
        scope = self.scope
        self.lines += 1
        if scope.depth < 3 and self.lines < ENOUGH and self.choose(10) > 6:
            return self.compound_statement(self.pick(self.compound), indent)
        menu = self.simple
        if self.chance(5):
            menu = list(statements.CONSUMERS)
            menu += statements.LOOP if scope.loop else []
            menu += statements.RETURN if scope.function and not scope.group else []
        if scope.generator and self.chance(2):
            menu = statements.GENERATOR
        template = self.pick(menu)
        if template == "$def":
            return self.nested_function(indent) if scope.depth < 3 else [INDENT * indent + "pass"]
        if "\n" in template:
            return self.compound_statement(template, indent)
        return self.line(template, indent, {})

    def line(self, template: str, indent: int, bound: dict[str, str]) -> list[str]:
        text = self.fill(template, bound=bound)
        self.scope.names += self.pending
        self.pending = []
        return [INDENT * indent + text]

    def compound_statement(self, template: str, indent: int) -> list[str]:
        bound: dict[str, str] = {}
        lines: list[str] = []
        visible = len(self.scope.names)
        for part in template.split("\n"):
            text = part.lstrip()
            at = indent + (len(part) - len(text)) // len(INDENT)
            if text in ("$block", "$loop", "$group"):
                with self.inner(text):
                    lines += self.block(at)
            else:
                lines += self.line(text, at, bound)
        if "exc" in bound or not self.chance(3):
            del self.scope.names[visible:]
        return lines

    @contextmanager
    def inner(self, kind: str) -> Iterator[None]:
        scope = self.scope
        before = scope.depth, scope.loop, scope.group
        scope.depth += 1
        if kind == "$loop":
            scope.loop = True
        elif kind == "$group":
            scope.loop, scope.group = False, True
        yield
        scope.depth, scope.loop, scope.group = before

    # -- definitions ---------------------------------------------------------------------------------------------------

    @contextmanager
    def function_scope(self, params: dict[str, str], **changes: Any) -> Iterator[Scope]:
        """A function's scope, which sees the names given it in `changes`, or none."""
        outer, pending = self.scope, self.pending
        visible = changes.pop("names", [])
        self.scope = Scope([*visible, *params.items()], set(params), function=True, **changes)
        self.pending = []
        yield self.scope
        self.scope, self.pending = outer, pending

    def nested_function(self, indent: int) -> list[str]:
        outer = self.scope
        name, param = self.fresh("function"), self.fresh("int")
        head = self.fill("(" + param + self.pick(["", "=$int", ", *rest", "=$any, **rest"]) + "):")
        generator = self.chance(5)
        names = list(outer.names)
        with self.function_scope({param: "int"}, names=names, depth=outer.depth + 1, generator=generator) as scope:
            free = [n for n, kind in outer.names if n in outer.owned and kind != "exc" and n != "rest"]
            declared = sorted({self.pick(free) for _ in range(self.choose(3))}) if free else []
            scope.owned |= set(declared)
            body = self.block(indent + 1)
            body += self.line("return $any", indent + 1, {})
        lines = [INDENT * indent + f"def {name}{head}"]
        lines += [INDENT * (indent + 1) + f"nonlocal {', '.join(declared)}"] if declared else []
        outer.names.append((name, "generator_function" if generator else "function"))
        outer.owned.add(name)
        return lines + _with_globals(body, indent + 1)

    def write_helper(self, kind: str) -> None:
        name = self.fresh({"function": "help", "generator": "generate", "cm": "manage"}[kind])
        if kind == "cm":
            self.write_manager(name)
            return
        signature, params, calls = self.pick(statements.SIGNATURES)
        with self.function_scope(params, depth=1, generator=kind == "generator"):
            body = self.block(1)
            body += self.line("yield $any" if kind == "generator" else "return $any", 1, {})
        self.definitions.append("\n".join([f"def {name}({signature}):", *_with_globals(body, 1)]))
        self.made[kind].append((name, calls))

    def write_manager(self, name: str) -> None:
        template = "try:\n    yield n\nexcept $handled as @exc:\n    $block\nfinally:\n    $block"
        if self.choose(2):
            template = "$any\ntry:\n    yield $any\nfinally:\n    $block"
        with self.function_scope({"n": "int"}, depth=2):
            body = self.compound_statement(template, 1)
        lines = ["@contextlib.contextmanager", f"def {name}(n):", *_with_globals(body, 1)]
        self.definitions.append("\n".join(lines))
        self.made["cm"].append((name, ["($int)"]))

    def write_class(self) -> None:
        name = self.fresh("klass").upper()
        parents = self.made["classname"]
        heads = [h for h in statements.HEADS if parents or "$parent" not in h]
        head = self.pick(heads).replace("$this", name).replace("$parent", parents[0] if parents else "")
        slots = "Base" not in head and "(" not in head and self.chance(4)
        lines = [head]
        lines += [INDENT + (statements.SLOTS if slots else "count = 0"), INDENT + "shared = [0]"]
        lines += [INDENT + "__match_args__ = ('x', 'items')", ""]
        if "(K" not in head:
            lines += [INDENT + "def __init__(self, x=1, items=None):", INDENT * 2 + "self.x = x"]
            lines += [INDENT * 2 + "self.items = [x, 2] if items is None else items", ""]
        with self.function_scope({"self.x": "int", "self.items": "list"}, depth=2):
            for member in statements.MEMBERS:
                if self.chance(3):
                    text = self.fill(member.replace("$this", name).replace("\n#\n", "\n\n"))
                    lines += [INDENT + line if line else "" for line in text.split("\n")] + [""]
                    self.pending = []
        self.definitions.append("\n".join(lines).rstrip())
        self.made["classname"].append(name)

    # -- the whole -----------------------------------------------------------------------------------------------------

    def module(self) -> str:
        params = {"abcd"[i]: self.pick(self.types) for i in range(1 + self.choose(4))}
        with self.function_scope(params):
            body = self.top()
        calls = self.write_calls(list(params.values()))
        definition = "\n".join([f"def program({', '.join(params)}):", *_with_globals(body, 1)])
        text = "\n\n\n".join([*self.definitions, definition, calls]) + "\n"
        return "".join(part for word, part in statements.PRELUDE if re.search(word, text)) + "\n" + text

    def top(self) -> list[str]:
        lines = []
        for _ in range(1 + self.choose(6)):
            if self.chance(3):
                lines += self.compound_statement("try:\n    $block\nexcept Exception as @exc:\n    LOG.append(@exc)", 1)
            else:
                lines += self.statement(1)
        return lines + self.line(self.pick(["return $any", "return $any, $any, $any"]), 1, {})

    def write_calls(self, kinds: list[str]) -> str:
        """The arguments of the calls: mostly alike, sometimes the same objects again, now and then of another type."""
        with self.function_scope({}, depth=3) as scope:
            lines = ["def calls():"]
            for kind in ("list", "dict", "object", "function")[: self.choose(5)]:
                lines.append(f"    {kind[:1] * 2} = {self.expression(kind, 3)}")
                scope.names.append((kind[:1] * 2, kind))
            first: list[str] = []
            for _ in range(CALLS):
                texts = []
                for i, kind in enumerate(kinds):
                    how = self.choose(6) if first else 1
                    if how in (0, 3, 4):
                        texts.append(first[i])
                    else:
                        texts.append(self.expression("any" if how == 5 else kind, 3))
                first = first or texts
                lines.append(f"    yield ({', '.join(texts)},)")
        return "\n".join(lines)


def _with_globals(body: list[str], indent: int) -> list[str]:
    assigned = any(re.match(r"\s*COUNT\b", line) for line in body)
    return [INDENT * indent + "global COUNT", *body] if assigned else body
