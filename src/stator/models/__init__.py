"""Models of what Python programs work with: builtin types and functions, C modules of the standard library.

Importing this package registers every model: each file in its rooms is imported, so that none can be forgotten. What is
in `rare` is announced, and imported when a program needs it.
"""

import importlib
import pkgutil

for _room in pkgutil.iter_modules(__path__, f"{__name__}."):
    _found = importlib.import_module(_room.name)
    if _room.ispkg and _room.name != f"{__name__}.rare":
        for _file in pkgutil.iter_modules(_found.__path__, f"{_room.name}."):
            importlib.import_module(_file.name)
