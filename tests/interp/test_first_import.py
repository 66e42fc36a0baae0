"""First imports inside of a compiled function: made while tracing where nothing can come too early."""

import sys

import pytest

import stator


@pytest.fixture(autouse=True)
def modules(tmp_path, monkeypatch):
    (tmp_path / "first_plain.py").write_text("import sys\nseen = len(sys.argv)\nvalue = 5\n")
    (tmp_path / "first_package").mkdir()
    (tmp_path / "first_package" / "__init__.py").write_text("")
    (tmp_path / "first_package" / "part.py").write_text("value = 7\n")
    (tmp_path / "first_failing.py").write_text("raise LookupError('no luck')\n")
    (tmp_path / "first_looking.py").write_text("import first_log\nseen = list(first_log.lines)\n")
    (tmp_path / "first_log.py").write_text("lines = []\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in [name for name in sys.modules if name.startswith("first_")]:
        del sys.modules[name]


def compiled(fn, **options):
    return stator.compile(fn, backend="eager", **options)


def test_first_imports_are_made_while_tracing():
    def f(a):
        import first_package.part
        import first_plain

        return a + first_plain.value + first_package.part.value

    assert compiled(f, fullgraph=True)(1) == 13
    assert stator.stats().graph_breaks == 0


def test_submodules_and_functions_that_import():
    def f(a):
        from first_package import part

        return a + part.value + __import__("first_plain").value

    assert compiled(f, fullgraph=True)(1) == 13


def test_a_module_sees_what_the_function_did_before():
    import first_log

    def f(a):
        first_log.lines.append(a)
        import first_looking

        return first_looking.seen

    assert compiled(f)(3) == [3]
    assert "SB0403" in [record.code for record in stator.stats().breaks]


def test_an_import_that_fails_raises_the_error_of_the_statement():
    def f(a):
        try:
            import first_failing
        except LookupError as e:
            return a, e.args
        return first_failing

    def g():
        import first_missing

        return first_missing

    assert compiled(f)(1) == (1, ("no luck",))
    with pytest.raises(ModuleNotFoundError, match="No module named 'first_missing'"):
        compiled(g)()
