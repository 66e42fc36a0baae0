"""Models that ordinary PyTorch programs never meet, in rooms named as those of `stator.models`.

A file is imported when the program meets something that it is about (`stator/space/rare.py` says how). What that is
stands in the index, by name: a module with all that it defines, a type with its methods, a function, or, with a star,
methods of that name of any type. `tests/models/test_rare.py` checks that the index is complete.
"""

from stator.space.rare import announce

#: file → names, with spaces between them
INDEX = {
    "exceptions.exception_group": "builtins.BaseExceptionGroup",
    "functions.anext_": "builtins.aiter builtins.anext builtins.anext_awaitable",
    "functions.async_generator": (
        "builtins.async_generator builtins.async_generator_asend builtins.async_generator_athrow"
    ),
    "functions.code_iterators": (
        "builtins.code.co_lines builtins.code.co_positions builtins.line_iterator builtins.positions_iterator"
    ),
    "identity.sizes": "*.__sizeof__ builtins.bytearray.__alloc__ sys.getsizeof",
    "identity.weakproxy": "weakref.ProxyType weakref.CallableProxyType _weakref.proxy",
    "iterators.combinatorics": (
        "itertools.product itertools.permutations itertools.combinations itertools.combinations_with_replacement"
        " itertools.groupby itertools._grouper itertools.tee itertools._tee itertools._tee_dataobject"
    ),
    "numbers.decimal_": "decimal _decimal",
    "numbers.decimal_context": "decimal _decimal",
    "stdlib.ast_": "ast _ast",
    "stdlib.datetime_": "datetime",
    "stdlib.io_": "_io",
    "stdlib.linecache_": "linecache",
    "text.bytearray_": "builtins.bytearray builtins.bytearray_iterator",
    "text.memoryview_": "builtins.memoryview builtins.memory_iterator",
}

announce(__name__, INDEX)
