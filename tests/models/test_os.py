"""What the file system says: asked when tracing, and again at every call."""

import linecache
import os

import stator


def test_status_is_guarded(tmp_path):
    path = str(tmp_path / "file")

    def look():
        return os.path.exists(path), os.path.isdir(path), os.stat(path).st_size if os.path.isfile(path) else None

    compiled = stator.compile(look, fullgraph=True)
    assert compiled() == look() == (False, False, None)
    with open(path, "w") as file:
        file.write("abc")
    assert compiled() == look() == (True, False, 3)
    assert compiled() == look()
    os.remove(path)
    assert compiled() == look()
    assert stator.stats().frames == 2


def test_paths_as_objects_and_links(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("abc")
    link.symlink_to(target)

    def look():
        return link.stat().st_size, link.is_symlink(), os.lstat(link).st_size, os.stat(link, follow_symlinks=False)[0]

    assert stator.compile(look, fullgraph=True)() == look()


def test_errors_of_the_system(tmp_path):
    path = str(tmp_path / "missing")

    def look():
        try:
            os.stat(path)
        except OSError as e:
            return type(e), str(e), e.errno, e.filename

    assert stator.compile(look, fullgraph=True)() == look()


def test_lines_of_files(tmp_path):
    path = str(tmp_path / "lines.py")
    with open(path, "w") as file:
        file.write("first\nsecond")

    def look():
        return linecache.getline(path, 1), linecache.getlines(path), linecache.getline(path + "x", 1)

    compiled = stator.compile(look, fullgraph=True)
    expected = ("first\n", ["first\n", "second\n"], "")
    assert compiled() == compiled() == expected
    linecache.clearcache()
    assert compiled() == expected
