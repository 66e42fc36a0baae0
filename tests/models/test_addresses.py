"""Texts that show where an object lies which the traced program has made."""

import functools
import types

import stator


class Plain:
    def method(self):
        return self


def graphed(function, *args):
    return stator.compile(function, backend="eager", fullgraph=True)(*args)


def test_texts_of_a_new_object():
    def f():
        plain = Plain()
        text = f"{plain!r} and {plain.method}"
        assert repr(plain) == repr(plain)
        return plain, text, "%s|%r" % (plain, plain.method), "{}|{!r}".format(plain, plain), " ".join([text, "end"])  # noqa: UP031, UP032

    plain, *texts = graphed(f)
    shown = object.__repr__(plain)
    method = f"<bound method Plain.method of {shown}>"
    assert texts == [f"{shown} and {method}", f"{shown}|{method}", f"{shown}|{shown}", f"{shown} and {method} end"]


def test_the_number_of_a_new_object_as_text():
    def f():
        plain = Plain()
        number = id(plain)
        return plain, f"{number}", str(number), repr(id(plain)), f"{number:#x}", f"<{id(plain):>20}>", format(number)

    plain, *texts = graphed(f)
    number = id(plain)
    assert texts == [f"{number}", str(number), repr(number), f"{number:#x}", f"<{number:>20}>", format(number)]


def test_new_objects_in_containers():
    def f():
        def inner():
            return 1

        made = [
            [inner, 1],
            (inner,),
            {"a": inner, inner: 2},
            {inner},
            frozenset([inner]),
            types.SimpleNamespace(a=inner, b=1),
            functools.partial(inner, inner, key=inner),
            ValueError(inner, 2),
            {"a": inner}.values(),
            types.MappingProxyType({"a": inner}),
        ]
        return made, [repr(each) for each in made]

    made, texts = graphed(f)
    assert texts == [repr(each) for each in made]


def test_the_object_need_not_outlive_its_text():
    def f():
        return repr(Plain())

    text = graphed(f)
    assert text.startswith(f"<{__name__}.Plain object at 0x") and text.endswith(">")


def test_what_can_be_said_of_texts_with_addresses():
    def f():
        plain = Plain()
        text = repr(plain)
        said = [
            text.startswith("<tests"),
            text.startswith("<other"),
            text.endswith(">"),
            text.endswith("}"),
            "object at" in text,
            " -> " in text,
            text == "plain",
            text != "plain",
            text == repr(plain),
        ]
        return plain, said, text.replace("object at", "lies at"), text + "!"

    plain, said, replaced, more = graphed(f)
    text = repr(plain)
    assert said == [text.startswith("<tests"), False, True, False, True, False, False, True, True]
    assert (replaced, more) == (text.replace("object at", "lies at"), text + "!")


def test_what_depends_on_the_address_breaks():
    def f():
        text = repr(Plain())
        return "0x" in text, len(text) > 5

    assert stator.compile(f, backend="eager")() == (True, True)
    assert stator.stats().graph_breaks == 1
