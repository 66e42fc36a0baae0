"""Models of builtin functions and of the C modules of the standard library."""

from stator.stdlib import (  # noqa: F401
    builtins_,
    builtins_iter,
    caches,
    collections_,
    combinatorics,
    frames_,
    functools_,
    id_,
    io_,
    isinstance_,
    itertools_,
    math_,
    operator_,
    output,
    polyfill,
    purity,
    repr_,
    str_,
    threading_,
)
