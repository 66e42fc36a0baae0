"""Models of what Python programs work with: builtin types and functions, C modules of the standard library.

Importing this package registers every model: each file in it is imported, so none can be forgotten.
"""

import importlib
import pkgutil

for _file in pkgutil.walk_packages(__path__, f"{__name__}."):
    importlib.import_module(_file.name)
