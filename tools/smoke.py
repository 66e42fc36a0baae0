"""Whether an installed Stator works: run with the Python it was installed for, anywhere but in the source tree.

`make wheel` and the release workflow run it on each wheel, in an environment without torch.
"""

import importlib.resources
import importlib.util
import os
import subprocess
import sys
import sysconfig

import stator


def squares(n: int) -> list[int]:
    return [i * i for i in range(n)]


def main() -> None:
    place = os.path.dirname(stator.__file__)
    assert os.path.realpath(place).startswith(os.path.realpath(sys.prefix)), f"{place} is not the installed one"
    compiled = stator.compile(squares, fullgraph=True)
    assert compiled(4) == compiled(4) == [0, 1, 4, 9]
    assert stator.stats().frames == 1, stator.stats()
    assert "[0, 1, 4, 9]" in stator.generated_source(compiled)
    # What is no Python file has to be packaged by name.
    assert importlib.resources.files("stator").joinpath("py.typed").is_file()
    assert not importlib.resources.files("stator").joinpath("_core", "module.cpp").is_file(), "sources are installed"
    command = os.path.join(sysconfig.get_path("scripts"), "stator")
    for arguments in (["doctor"], ["why", "SB0201"]):
        done = subprocess.run([command, *arguments], capture_output=True, text=True, timeout=120)
        print(done.stdout if arguments == ["doctor"] else done.stdout.splitlines()[0])
        assert done.returncode == 0, done.stderr
    torch = "with" if importlib.util.find_spec("torch") else "without"
    print(f"stator {stator.__version__} works on Python {sys.version.split()[0]} {torch} torch")


if __name__ == "__main__":
    main()
