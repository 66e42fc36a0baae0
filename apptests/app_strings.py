"""Text: f-strings, methods of str and bytes, formatting, regular expressions."""

import re
import sys
import unicodedata


def app_fstrings():
    name, value, width = "pi", 3.14159, 8
    assert f"{name}={value:.2f}" == "pi=3.14"
    assert f"{value:{width}.{2}f}|" == "    3.14|"
    assert f"{name!r} {name!s} {name!a}" == "'pi' pi 'pi'"
    assert f"{value=:.1f}" == "value=3.1"
    assert f"{{}} {1 + 1} {'nested'} {[x for x in range(2)]}" == "{} 2 nested [0, 1]"


def app_fstring_calls_format():
    class Money:
        def __format__(self, spec):
            return f"<{spec}>"

        def __str__(self):
            return "str"

        def __repr__(self):
            return "repr"

    assert f"{Money()} {Money():x} {Money()!s} {Money()!r:>6}" == "<> <x> str   repr"


def app_format_specs():
    assert f"{255:#x} {255:08b} {1234567:,} {0.256:.1%} {-5:+d} {5:+d}" == "0xff 11111111 1,234,567 25.6% -5 +5"
    assert f"{'a':<3}|{'a':>3}|{'a':^3}|{'a':*^5}" == "a  |  a| a |**a**"
    assert "{0} {1} {0}".format("a", "b") == "a b a"
    assert "{x[k]} {y.real}".format(x={"k": 1}, y=2) == "1 2"


def app_percent_formatting():
    assert "%s %d %05.1f %r %%" % ("a", 3, 2.25, "q") == "a 3 002.2 'q' %"
    assert "%(a)s-%(b)03d" % {"a": 1, "b": 2} == "1-002"
    try:
        "%d" % "x"
    except TypeError as error:
        assert "a real number is required" in str(error)
    else:
        raise AssertionError("no TypeError")


def app_methods():
    s = "  Hello, World  "
    assert s.strip() == "Hello, World"
    assert s.strip().lower().replace("l", "L", 2) == "heLLo, world"
    assert "a,b,,c".split(",") == ["a", "b", "", "c"]
    assert " a  b ".split() == ["a", "b"] and "a-b-c".rsplit("-", 1) == ["a-b", "c"]
    assert "k=v=w".partition("=") == ("k", "=", "v=w") and "k=v=w".rpartition("=") == ("k=v", "=", "w")
    assert "-".join(["a", "b"]) == "a-b" and "ab".upper().center(6, ".") == "..AB.."
    assert "prefix_name".removeprefix("prefix_") == "name" and "x.py".removesuffix(".py") == "x"
    assert "abc".find("c") == 2 and "abc".find("z") == -1 and "banana".count("an") == 2
    assert "x".startswith(("y", "x")) and not "x".endswith("y")
    assert "abc".translate(str.maketrans("ab", "xy", "c")) == "xy"
    assert "a\nb\r\nc".splitlines() == ["a", "b", "c"]
    assert "title case".title() == "Title Case" and "7".zfill(3) == "007" and "aB".swapcase() == "Ab"
    assert "12".isdigit() and "ab".isalpha() and not "a b".isalnum() and "a_1".isidentifier()


def app_indexing_and_operators():
    s = "stator"
    assert s[0] + s[-1] + s[1:3] + s[::-1] + s[-2:] == "srtarotatsor"
    assert "tat" in s and "x" not in s and s * 2 == "statorstator" and "a" < "b" <= "b"
    assert [ord(c) for c in "az"] == [97, 122] and chr(955) == "λ" and len("λ→") == 2
    assert sorted("cab") == ["a", "b", "c"] and max("hello") == "o"


def app_index_of_a_missing_part():
    try:
        "abc".index("z")
    except ValueError as error:
        assert str(error) == "substring not found"
    else:
        raise AssertionError("no ValueError")


def app_bytes():
    b = "λx".encode()
    assert b == b"\xce\xbbx" and b[0] == 0xCE and b.decode() == "λx" and b[2:] == b"x"
    assert b"a" + b"b" == b"ab" and bytes([1, 2]).hex() == "0102" and bytes.fromhex("ff") == b"\xff"
    array = bytearray(b"abc")
    array[0] = 65
    array.append(100)
    assert bytes(array) == b"Abcd" and int.from_bytes(b"\x01\x00", "big") == 256


def app_repr_and_str():
    assert repr([1, "a", (None,), {"k": {2}}, 1.0, 1e100, b"x"]) == "[1, 'a', (None,), {'k': {2}}, 1.0, 1e+100, b'x']"
    assert str(True) == "True" and repr("it's") == '"it\'s"' and str(3 + 4j) == "(3+4j)"
    recursive = [1]
    recursive.append(recursive)
    assert repr(recursive) == "[1, [...]]"


def app_regular_expressions():
    pattern = re.compile(r"(?P<name>[a-z_]+)\.(\d+)")
    found = pattern.search("layer encoder.12.weight")
    assert found.group("name") == "encoder" and int(found.group(2)) == 12 and found.span() == (6, 16)
    assert re.sub(r"\d+", lambda m: str(int(m.group()) + 1), "a1b9") == "a2b10"
    assert re.split(r"[,;]\s*", "a, b;c") == ["a", "b", "c"] and re.findall(r"\w+", "a b") == ["a", "b"]
    assert pattern.match("12") is None


def app_string_building_in_a_loop():
    out = ""
    for i, c in enumerate("abc"):
        out += f"{c}{i}" if i % 2 == 0 else c.upper()
    assert out == "a0Bc2"


def app_facts_about_characters():
    assert [unicodedata.east_asian_width(c) for c in "aＡ中"] == ["Na", "F", "W"]
    assert (unicodedata.bidirectional("a"), unicodedata.combining("\u0301"), unicodedata.mirrored("(")) == ("L", 230, 1)
    assert (unicodedata.decimal("٣"), unicodedata.digit("²"), unicodedata.numeric("½")) == (3, 2, 0.5)
    assert unicodedata.decomposition("é") == "0065 0301" and unicodedata.is_normalized("NFC", "é")
    assert unicodedata.numeric("x", None) is None


def test_interned_strings_are_the_same_after_a_break():
    first = sys.intern("".join(["two ", "words"]))
    assert sys.intern("".join(["two", " words"])) is first
    return first
