"""Formatting against CPython."""

# ruff: noqa: E501 (tables)

import pytest

from tests.models.agree import agree, expressions


class Thing:
    name = "thing"
    items = {"a": [1, 2], "b": "x"}

    def __repr__(self):
        return "Thing()"

    def __str__(self):
        return "a thing"

    def __format__(self, spec):
        return f"[{spec}]"

    def __getitem__(self, key):
        return f"item {key!r}"


class Number:
    def __int__(self):
        return 42

    def __float__(self):
        return 2.5

    def __index__(self):
        return 7


class Bad:
    __str__ = __repr__ = __format__ = lambda self, *args: 3


class Raising:
    def __str__(self):
        raise ValueError("no text")


class Text(str):
    def __str__(self):
        return "own"


def words():
    yield "a"
    yield "b"


thing, number, text = Thing(), Number(), Text("text")

EXPRESSIONS = r"""
f"{thing}", f"{thing!r}", f"{thing!s}", f"{thing!a}", f"{thing:x}", f"{thing!r:>10}", f"{3:>{5}}", f"{'ä'!a}", f"{text}", f"{text!s}", f"{text:>8}"
f"{3}{'a'}{2.5:.2f}{None}{[1, thing]}{True:d}"
f"{Bad()}"
f"{Bad()!r}"
f"{Raising()}"
f"{3:x>}"
f"{'a':d}"
"{} {}".format(1, thing), "{1} {0}".format(1, 2), "{a} {b}".format(a=1, b=thing), "{0.name} {0.items[a][1]} {0[k]}".format(thing), "{:>{}}".format("a", 5), "{!r:>10}".format(thing), "{{}}".format(), "{0!s}{0!a}".format(thing)
"{} {0}".format(1, thing)
"{0} {}".format(1, thing)
"{".format(thing)
"}".format(thing)
"{2}".format(thing)
"{a}".format(thing)
"{!z}".format(thing)
"{:{:{}}}".format(thing, 2, 3)
"{0.missing}".format(thing)
"{template} {space}".format(template=thing, space=1)
"{a} {b}".format_map({"a": 1, "b": thing})
"{}".format_map({"a": thing})
"{a}".format_map(thing)
"%s %r %a %%" % (thing, thing, "ä"), "%s" % thing, "%d %i %5.1f %x %o %e" % (number, number, number, number, number, number), "%(a)s %(b)d" % {"a": thing, "b": 2}, "%5s|%-5s|%05d" % ("a", "b", 3), "%*d" % (5, 3), "%.3s" % "abcdef", "%c%c" % (97, "b"), "%s" % (thing,), "%s" % [thing]
"%s %s" % thing
"%d" % thing
"%x" % 1.5
"%x" % thing
"%y" % thing
"%" % ()
"%(a)s" % thing
"%(a" % {"a": thing}
"%(a)s %s" % {"a": thing}
"%s %(a)s" % {"a": thing}
"%s %s" % {"a": thing}
"abc" % {"a": thing}, "abc" % []
"abc" % (thing,)
"abc" % 1
"%*d" % (thing, 1)
"%s" % Bad()
"%5%" % (thing,)
"%c" % "ab"
"%.2f" % "a"
"-".join(words()), "-".join(["a"]), "".join([]), ",".join(str(x) for x in [1, 2]), "".join(("a", text)), "-".join({"a": 1, "b": 2})
"-".join([1])
"-".join(3)
"-".join(["a", thing])
"a-b".split("-"), "abc".startswith(("x", "a")), "a,b".partition(","), "abc".translate({97: "x"}), "abc".replace("a", "b"), "abc"[1:], "abc" * 2, "a" in "abc", "a" + "b", "abc".find("c"), " a ".strip(), "a".encode(), "abc".index("b"), "A".lower(), "x".center(5, "*"), "a b".title(), str.maketrans("a", "b")
"abc".index("z")
"a" + 1
"a".nothing()
str(thing), repr(thing), str(text), "a" < "b", "a" == thing, thing == "a", ["a", "b"] == ["a", "b"]
str(Raising())
print(thing), print()
print(thing, sep=3)
"""


@pytest.mark.parametrize("expression", expressions(globals(), EXPRESSIONS), ids=lambda e: e.__name__)
def test_agrees(expression):
    agree(expression)
