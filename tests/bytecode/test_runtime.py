"""What generated programs call at run time."""

from stator.bytecode.runtime import untraced


def test_equal_codes_of_two_files_stay_apart():
    def made(name):
        scope = {}
        exec(compile("def f(x):\n    return x[0]\n", name, "exec"), scope)
        return scope["f"]

    first, second = made("first.py"), made("second.py")
    assert first.__code__ == second.__code__
    assert [untraced(f).__code__.co_filename for f in (first, second)] == ["first.py", "second.py"]
