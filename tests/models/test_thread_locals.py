"""threading.local: each thread has attributes of its own, in a trace too."""

import threading

import stator

LOCAL = threading.local()


def step(n):
    LOCAL.count = getattr(LOCAL, "count", 0) + n
    had = hasattr(LOCAL, "gone"), "count" in vars(LOCAL), type(LOCAL).__name__
    LOCAL.gone = n
    del LOCAL.gone
    try:
        LOCAL.missing  # noqa: B018
    except AttributeError as e:
        return LOCAL.count, str(e), had, LOCAL.__dict__ is vars(LOCAL)


def runs(function):
    """What three calls give, and what is in the dict then, in a thread of its own."""
    found = []

    def run():
        found.extend([function(1), function(1), function(2), dict(LOCAL.__dict__)])

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found


def test_attributes_of_the_thread():
    compiled = stator.compile(step, fullgraph=True)
    expected = runs(step)
    for _ in range(2):
        assert runs(compiled) == expected
    assert not vars(LOCAL)


def test_what_is_left_to_python():
    class Counting(threading.local):
        def __init__(self):
            self.count = 5

    own = Counting()

    def read():
        return own.count

    compiled = stator.compile(read)
    assert runs(lambda n: compiled()) == [5, 5, 5, {}]

    def made():
        here = threading.local()
        here.x = 1
        return here.x

    assert stator.compile(made)() == 1
