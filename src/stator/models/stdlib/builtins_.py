"""Builtin functions: `Python/bltinmodule.c`, over traced values."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from contextlib import nullcontext

from stator import errors
from stator.host.version_facts import SUM_COMPENSATES
from stator.host.words import error_words
from stator.models.functions.imports import first_import, import_parts, loaded
from stator.models.iterators.builtins_iter import CallableIterator
from stator.models.numbers.advice import FOR_ORDER, advising
from stator.models.text.repr_ import ascii_of, repr_of
from stator.models.text.str_format import format_of
from stator.space.attributes import MISSING
from stator.space.host_types import Host
from stator.space.identity.aliasing import InternedTexts
from stator.space.operands import bool_value, call_slot, check_kind, hooked, known_host, literal
from stator.space.protocol import EXTREME_HOOKS, NONE, builtin
from stator.space.space import Space
from stator.space.value import NULL, Constant, Raised, Unsupported, Value


@builtin(sys.intern)
def intern(space: Space, text: Value, /) -> Value:
    host = space.run_known(sys.intern, [text]).as_host(space)
    space.trace.extension(InternedTexts).texts[id(host)] = host
    return Constant(host)


def _truth(space: Space, item: Value) -> bool:
    """The truth of one of the items of `all` or `any`: where nobody knows it, the branch on the result may decide."""
    try:
        return space.truth(item)
    except Unsupported:
        decided = space.trace.assumed(item)
        if decided is None:
            raise
        return decided


_FUNCTIONS: dict[Host, Callable[..., Value]] = {
    abs: lambda space, value, /: space.unary("abs", value),
    all: lambda space, iterable, /: bool_value(all(_truth(space, item) for item in space.iterate(iterable))),
    any: lambda space, iterable, /: bool_value(any(_truth(space, item) for item in space.iterate(iterable))),
    callable: lambda space, value, /: bool_value(space.host_lookup(value.force().cls, "__call__") is not MISSING),
    repr: lambda space, value, /: repr_of(space, value),
    ascii: lambda space, value, /: ascii_of(space, value),
    len: lambda space, value, /: space.len(value),
    hash: lambda space, value, /: space.hash(value),
    chr: lambda space, number, /: space.run_known(chr, [Constant(space.int_(number))]),
    ord: lambda space, character, /: hooked(space, ord, [character.force()]),
    bin: lambda space, number, /: space.fresh(bin(space.int_(number))),
    hex: lambda space, number, /: space.fresh(hex(space.int_(number))),
    oct: lambda space, number, /: space.fresh(oct(space.int_(number))),
    globals: lambda space: space.trace.namespaces.globals_of(space.trace.frame.globals).value(space),
}
for _host, _model in _FUNCTIONS.items():
    builtin(_host)(_model)


@builtin(format)
def format_(space: Space, value: Value, spec: Value = Constant(""), /) -> Value:  # noqa: B008 (immutable)
    check_kind(space, spec, str, "format() argument 2 must be str, not %T")
    return format_of(space, value, spec)


# -- numbers --------------------------------------------------------------------------------------------------------


@builtin(divmod)
def divmod_(space: Space, left: Value, right: Value, /) -> Value:
    left, right = left.force(), right.force()
    if literal(left) and literal(right):
        return space.run_known(divmod, [left, right])
    return _binary_function(space, "divmod()", "__divmod__", "__rdivmod__", left, right)


def _binary_function(space: Space, shown: str, method: str, reflected: str, left: Value, right: Value) -> Value:
    result = space._binary_slots(method, reflected, left, right)
    if space.is_not_implemented(result):
        names = f"'{left.type_name(space)}' and '{right.type_name(space)}'"
        raise space.error(TypeError, f"unsupported operand type(s) for {shown}: {names}")
    return result


@builtin(pow)
def pow_(space: Space, base: Value, exp: Value, mod: Value = NONE) -> Value:
    base, exp, mod = base.force(), exp.force(), mod.force()
    if mod.is_none():
        return space.binary("**", base, exp)
    if literal(base) and literal(exp) and literal(mod):
        return space.run_known(pow, [base, exp, mod])
    slot = space.special(base, "__pow__")
    if slot is not None:
        result = space.call(slot, [base, exp, mod], {}).force()
        if not space.is_not_implemented(result):
            return result
    names = f"'{base.type_name(space)}', '{exp.type_name(space)}', '{mod.type_name(space)}'"
    raise space.error(TypeError, f"unsupported operand type(s) for ** or pow(): {names}")


@builtin(round)
def round_(space: Space, number: Value, ndigits: Value = NONE) -> Value:
    number, ndigits = number.force(), ndigits.force()
    digits = [] if ndigits.is_none() else [ndigits]
    if literal(number) and all(map(literal, digits)):
        return space.run_known(round, [number, *digits])
    return call_slot(space, number, "__round__", "type %T doesn't define __round__ method", *digits)


@builtin(sum)
def sum_(space: Space, iterable: Value, /, start: Value = Constant(0)) -> Value:  # noqa: B008 (immutable)
    """Numbers are added by CPython itself, whose `sum` is more exact than a row of additions."""
    total = start.force()
    for kind, joined in ((str, "strings [use ''.join(seq)"), (bytes, "bytes [use b''.join(seq)")):
        if total.isa(kind):
            space.iter(iterable)
            raise space.error(TypeError, f"sum() can't sum {joined} instead]")
    if total.isa(bytearray):
        space.iter(iterable)
        raise space.error(TypeError, "sum() can't sum bytearray [use b''.join(seq) instead]")
    iterator = space.iter(iterable)
    plain: list[Host] = [total.as_host(space)] if _plain_number(total) else []
    symbolic = False
    while (item := space.next(iterator)) is not None:
        item = item.force()
        if plain and _plain_number(item):
            plain.append(item.as_host(space))
            continue
        if plain:
            total, plain = _sum_plain(space, plain), []
        symbolic |= item.symbolic
        if symbolic and item.cls is float and item.constant and SUM_COMPENSATES:
            raise Unsupported(errors.UnsupportedCCall("sum"))  # compensated summation of what is only symbolic
        total = space.binary("+", total, item).force()
    return _sum_plain(space, plain) if plain else total


def _plain_number(value: Value) -> bool:
    return value.constant and value.cls in (int, float, bool)


def _sum_plain(space: Space, numbers: list[Host]) -> Value:
    if len(numbers) == 1:
        return Constant(numbers[0])
    return space.run_known(lambda: sum(numbers[1:], numbers[0]), [])


def _extreme(host: Host, symbol: str) -> None:
    """`min` and `max`: the first of the extreme elements."""
    name = host.__name__

    def model(space: Space, *args: Value, key: Value = NONE, default: Value | None = None) -> Value:
        if not args:
            raise space.error(TypeError, f"{name} expected at least 1 argument, got 0")
        if len(args) > 1 and default is not None:
            words = f"Cannot specify a default for {name}() with multiple positional arguments"
            raise space.error(TypeError, words)
        items = iter(args) if len(args) > 1 else space.iterate(args[0])
        best = best_key = None
        for item in items:
            item_key = item if key.is_none() else space.call(key, [item], {})
            if best is not None and key.is_none():
                answers = [hook(space, symbol, item.force(), best.force()) for hook in EXTREME_HOOKS]
                better = next((answer for answer in answers if answer is not None), None)
                if better is not None:
                    best = best_key = better
                    continue
            if best_key is None or _is_better(space, symbol, item_key, best_key, ordered=not key.is_none()):
                best, best_key = item, item_key
        if best is not None:
            return best
        if default is not None:
            return default
        raise space.error(ValueError, error_words(host, ()))

    builtin(host)(model)


def _is_better(space: Space, symbol: str, key: Value, best: Value, *, ordered: bool) -> bool:
    """How two elements compare, by their keys if they are `ordered`."""
    with advising(FOR_ORDER) if ordered else nullcontext():
        return space.truth(space.compare(symbol, key, best))


_extreme(max, ">")
_extreme(min, "<")


# -- iteration ------------------------------------------------------------------------------------------------------


@builtin(iter)
def iter_(space: Space, value: Value, sentinel: Value | None = None, /) -> Value:
    if sentinel is None:
        return space.iter(value)
    if space.host_lookup(value.force().cls, "__call__") is MISSING:
        raise space.error(TypeError, error_words(iter, None, None))
    return CallableIterator(value, sentinel)


@builtin(next)
def next_(space: Space, iterator: Value, default: Value | None = None, /) -> Value:
    iterator = iterator.force()
    slot = space.special(iterator, "__next__")
    if slot is None:
        raise space.error(TypeError, f"'{iterator.force().type_name(space)}' object is not an iterator")
    if default is None:
        return space.call(slot, [iterator], {})
    found = space.next(iterator)
    return default if found is None else found


@builtin(sorted)
def sorted_(space: Space, iterable: Value, /, *, key: Value = NONE, reverse: Value = Constant(False)) -> Value:  # noqa: B008
    result = space.new_list(list(space.unpack(iterable)))
    space.call_builtin(list.sort, [result], {"key": key, "reverse": reverse})
    return result


# -- attributes -----------------------------------------------------------------------------------------------------


def _attribute_name(space: Space, name: Value, function: str) -> str:
    name = check_kind(space, name, str, "attribute name must be string, not '%T'")
    return str.__str__(known_host(space, name, function))


@builtin(getattr)
def getattr_(space: Space, value: Value, name: Value, default: Value | None = None, /) -> Value:
    try:
        found = space.attribute_under(value, name.force()) if name.force().selects else None
        return space.getattr(value, _attribute_name(space, name, "getattr")) if found is None else found
    except Raised as e:
        if default is None or not e.matches(AttributeError):
            raise
        return default


@builtin(hasattr)
def hasattr_(space: Space, value: Value, name: Value, /) -> Value:
    return bool_value(getattr_(space, value, name, NULL) is not NULL)


@builtin(setattr)
def setattr_(space: Space, value: Value, name: Value, item: Value, /) -> Value:
    space.setattr(value, _attribute_name(space, name, "setattr"), item)
    return NONE


@builtin(delattr)
def delattr_(space: Space, value: Value, name: Value, /) -> Value:
    space.delattr(value, _attribute_name(space, name, "delattr"))
    return NONE


@builtin(vars)
def vars_(space: Space, value: Value | None = None, /) -> Value:
    if value is None:
        return space.call_builtin(locals, [], {})
    found = space.getattr_or_none(value, "__dict__")
    if found is None:
        raise space.error(TypeError, "vars() argument must have __dict__ attribute")
    return found


@builtin(dir)
def dir_(space: Space, value: Value | None = None, /) -> Value:
    if value is None:
        names = space.call_method(space.call_builtin(locals, [], {}), "keys")
        return sorted_(space, space.new_list(space.unpack(names)))
    return sorted_(space, call_slot(space, value, "__dir__", "object does not provide __dir__"))


# -- frames and modules ---------------------------------------------------------------------------------------------


@builtin(builtins.__import__)
def import_(
    space: Space,
    name: Value,
    globals: Value = NONE,
    locals: Value = NONE,
    fromlist: Value = NONE,
    level: Value = Constant(0),  # noqa: B008 (immutable)
) -> Value:
    """`__import__` of what has been imported already; the first import of a module runs its body, for real."""
    if space.int_(level) != 0:
        raise Unsupported(errors.UnsupportedUse("__import__", "of a relative name"))
    full = str(known_host(space, name, "__import__"))
    wanted = full if space.truth(fromlist) else full.partition(".")[0]
    module = loaded(space, full)
    if module is None:
        first_import(space, full)
    if space.truth(fromlist):
        import_parts(space, full, module, [space.known(item) for item in space.unpack(fromlist)])
    return loaded(space, wanted) or first_import(space, wanted)


@builtin(breakpoint)
def breakpoint_(space: Space, *args: Value, **kws: Value) -> Value:
    raise Unsupported(errors.DebuggerCall("breakpoint"))
