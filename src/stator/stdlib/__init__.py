"""Models of builtin functions and of the C modules of the standard library."""

from stator.stdlib import (
    builtins_,
    builtins_iter,
    combinatorics,
    functools_,
    id_,
    isinstance_,
    itertools_,
    math_,
    operator_,
    output,
    purity,
    repr_,
    str_,
)

__all__ = ["builtins_", "builtins_iter", "combinatorics", "functools_", "id_", "isinstance_", "itertools_", "math_", "operator_", "output", "purity", "repr_", "str_"]
