"""Which object a text is: programs compare sentinels by identity."""

import argparse

from apptests.marks import expected_break

SENTINEL = "== sentinel =="
MARK = b"mark of the program"


class Option:
    def __init__(self, default=SENTINEL, mark=MARK):
        self.default = default
        self.mark = mark


KEPT = Option()
OPTIONS = {"first": SENTINEL, "second": "== senti" + "nel =="[:]}


def given(default=SENTINEL):
    return default


def test_sentinels_in_new_objects():
    made = Option(KEPT.default, KEPT.mark)
    return made.default is SENTINEL, made.mark is MARK, given() is SENTINEL, given(KEPT.default) is made.default


def test_sentinels_returned():
    made = [Option(KEPT.default), {"a": given()}, given(KEPT.default)]
    return [made[0].default is SENTINEL, made[1]["a"] is SENTINEL, made[2] is SENTINEL], made[1:]


@expected_break("_io.TextIOWrapper.fileno")
def test_parsers_with_a_sentinel_as_default():
    parser = argparse.ArgumentParser(argument_default=argparse.SUPPRESS)
    parser.add_argument("--first")
    parser.add_argument("--second")
    found = [action.default is argparse.SUPPRESS for action in parser._actions]
    return found, vars(parser.parse_args(["--second", "x"]))
