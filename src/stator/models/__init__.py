"""Models of what Python programs work with: builtin types and functions, C modules of the standard library.

Importing this package registers every model. Each file of the rooms below is imported, so none can be forgotten.
"""

import importlib
import pkgutil

#: the order is that in which they depend on each other
ROOMS = (
    "classes",
    "containers",
    "exceptions",
    "functions",
    "hostcalls",
    "identity",
    "iterators",
    "numbers",
    "stdlib",
    "text",
)


def register_all() -> None:
    """Import each file of each room."""
    for room in ROOMS:
        package = importlib.import_module(f"{__name__}.{room}")
        for file in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{file.name}")


register_all()
