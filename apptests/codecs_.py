"""Encoding and decoding: by codecs of the standard library, and by what the program has registered."""

import codecs
import re

from apptests.marks import expected_break
from apptests.raising import message

OWN = {}
CALLS = []


def find_own(name):
    return OWN.get(name)


def replaced(error):
    CALLS.append(error.start)
    return str(len(CALLS)), error.end


codecs.register_error("apptests.count", replaced)


def test_standard_codecs():
    text = "é€"
    found = [text.encode(), text.encode("UTF_16"), text.encode("latin-1", "replace"), text.encode(encoding="utf8")]
    found += [b"\xff".decode("ascii", "ignore"), str(b"a", "cp1252"), bytes("a", "utf-32"), bytearray("a", "idna")]
    found += [codecs.encode("abc", "rot13"), codecs.decode(b"6162", "hex"), codecs.encode("a", errors="strict")]
    return found


def test_error_handlers():
    text = "aé"
    handled = [text.encode("ascii", errors) for errors in ("ignore", "xmlcharrefreplace", "namereplace")]
    return (
        handled,
        message(text.encode, "ascii"),
        message(text.encode, "ascii", "nobody"),
        text.encode("utf-8", "nobody"),
    )


@expected_break("codecs.register")
def test_a_codec_that_is_registered_in_between():
    codecs.register(find_own)
    OWN["apptests_late"] = codecs.CodecInfo(lambda text, errors="strict": (text.upper().encode(), len(text)), None)
    try:
        return codecs.encode("abc", "apptests_late"), "abc".encode("apptests_late")
    finally:
        codecs.unregister(find_own)
        del OWN["apptests_late"]


@expected_break("codecs.lookup_error")
def test_an_error_handler_of_the_program():
    CALLS.clear()
    return "aéüb".encode("ascii", "apptests.count"), CALLS


# -- regular expressions ----------------------------------------------------------------------------------------------


@expected_break("what can be changed")
def test_matches_in_what_is_changed():
    text = bytearray(b"abcdefgh")
    match = re.search(b"[a-h]+", text)
    text[:] = b"xyzxyzxy"
    return match.group()


@expected_break("what can be changed")
def test_all_matches_in_what_is_changed():
    text = bytearray(b"abcdefgh")
    found = re.finditer(b"[a-h]", text)
    first = next(found)
    text[0] = 120
    return first.group(), [match.group() for match in found]


@expected_break("re.DEBUG")
def test_patterns_that_are_printed():
    return re.compile("a|b", re.DEBUG).pattern
