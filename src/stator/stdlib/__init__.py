"""Models of builtin functions and of the C modules of the standard library."""

from stator.stdlib import (
    builtins_,
    builtins_iter,
    repr_,
    str_,
)
