"""Side effects on what existed before: module globals, instances, closures, containers, printed text; in order."""

import contextlib
import io
import logging
import warnings

from apptests.marks import expected_break

LOG = []
REGISTRY = {}


class Model:
    calls = 0

    def __init__(self):
        self.history = []
        self.cache = None

    def step(self, x):
        Model.calls += 1
        self.history.append(x)
        if self.cache is None:
            self.cache = {"first": x}
        self.last = x * 2
        return self.last


MODEL = Model()


def app_module_containers():
    LOG.clear()
    LOG.append("a")
    REGISTRY["k"] = LOG
    REGISTRY["k"].append("b")
    assert LOG == ["a", "b"] and REGISTRY["k"] is LOG
    REGISTRY.clear()


def app_instance_and_class_attributes():
    MODEL.__init__()
    Model.calls = 0
    assert [MODEL.step(x) for x in (1, 2)] == [2, 4]
    assert MODEL.history == [1, 2] and MODEL.cache == {"first": 1} and MODEL.last == 4 and Model.calls == 2
    del MODEL.last
    assert not hasattr(MODEL, "last")


def app_order_of_effects():
    LOG.clear()

    class Recorder:
        def __setattr__(self, name, value):
            LOG.append((name, value))
            object.__setattr__(self, name, value)

    r = Recorder()
    r.a = 1
    LOG.append("between")
    r.b = 2
    assert LOG == [("a", 1), "between", ("b", 2)]


def app_effects_before_an_exception_stay():
    LOG.clear()

    def fail():
        LOG.append("before")
        raise ValueError
        LOG.append("after")

    try:
        fail()
    except ValueError:
        LOG.append("handled")
    assert LOG == ["before", "handled"]


def app_print():
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        print("a", 1, sep="-", end="!\n")
        LOG.append(1)
        print([2], {"k": None})
    assert out.getvalue() == "a-1!\n[2] {'k': None}\n"


def app_print_shows_the_state_of_its_moment():
    out, values = io.StringIO(), [1]
    print(values, file=out)
    values.append(2)
    print(values, file=out)
    assert out.getvalue() == "[1]\n[1, 2]\n"


def app_warnings():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("careful", UserWarning, stacklevel=1)
    assert [(str(w.message), w.category) for w in caught] == [("careful", UserWarning)]


@expected_break("logging.getLogger makes a new logger under a lock of the logging module")
def app_logging():
    logger = logging.getLogger("apptests.effects")
    logger.propagate = False
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logger.addHandler(handler)
    try:
        logger.setLevel(logging.INFO)
        logger.debug("hidden")
        logger.info("shown %s", 1)
    finally:
        logger.removeHandler(handler)
    assert stream.getvalue() == "shown 1\n" and not logger.isEnabledFor(logging.DEBUG)


def app_temporary_change_is_undone():
    REGISTRY["level"] = 1

    @contextlib.contextmanager
    def override(value):
        before = REGISTRY["level"]
        REGISTRY["level"] = value
        try:
            yield
        finally:
            REGISTRY["level"] = before

    with override(2):
        assert REGISTRY["level"] == 2
    try:
        with override(3):
            raise KeyError
    except KeyError:
        pass
    assert REGISTRY.pop("level") == 1


def app_iterator_state_is_kept():
    iterator = iter([1, 2, 3, 4])
    assert next(iterator) == 1
    # zip takes one more from its first iterable before it notices that the second one is empty.
    assert [x for x, _ in zip(iterator, range(1))] == [2]
    assert list(iterator) == [4]


def app_monkeypatching():
    original = Model.step
    Model.step = lambda self, x: ("patched", x)
    try:
        assert MODEL.step(1) == ("patched", 1)
    finally:
        Model.step = original
    MODEL.__init__()
    assert MODEL.step(1) == 2
