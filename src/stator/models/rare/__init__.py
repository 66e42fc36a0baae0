"""Models that ordinary PyTorch programs never meet, in rooms named as those of `stator.models`.

A file is imported when the program meets something that it is about (`stator/space/rare.py` says how). What that is
stands in the index, by name: a module with all that it defines, a type with its methods, a function, or, with a star,
methods of that name of any type. `tests/models/test_rare.py` checks that the index is complete.
"""

from stator.space.rare import announce

#: file → names, with spaces between them
INDEX = {
    "classes.aliases": "types.GenericAlias builtins.generic_alias_iterator",
    "classes.alternate": (
        "builtins.int.from_bytes builtins.float.fromhex builtins.bytes.fromhex builtins.bytearray.fromhex"
    ),
    "classes.pybind11_": "pybind11_builtins builtins.instancemethod",
    "exceptions.exception_group": "builtins.BaseExceptionGroup",
    "functions.anext_": "builtins.aiter builtins.anext builtins.anext_awaitable",
    "functions.async_generator": (
        "builtins.async_generator builtins.async_generator_asend builtins.async_generator_athrow"
    ),
    "functions.cmp_to_key_": "_functools.cmp_to_key functools.KeyWrapper",
    "functions.code_": "builtins.compile builtins.eval builtins.exec",
    "functions.fresh_caches": "functools._lru_cache_wrapper.__new__",
    "functions.known_iterators": (
        "builtins.code.co_lines builtins.code.co_positions builtins.line_iterator builtins.positions_iterator"
        " _string builtins.formatteriterator builtins.fieldnameiterator"
    ),
    "identity.lifetimes": "gc sys.getrefcount",
    "identity.sizes": "*.__sizeof__ builtins.bytearray.__alloc__ sys.getsizeof",
    "identity.weakproxy": "weakref.ProxyType weakref.CallableProxyType _weakref.proxy",
    "iterators.groupby_": "itertools.groupby itertools._grouper",
    "iterators.itertools_functions": (
        "itertools.starmap itertools.filterfalse itertools.takewhile itertools.dropwhile itertools.accumulate"
    ),
    "iterators.itertools_in_step": "itertools.zip_longest itertools.compress itertools.pairwise itertools.batched",
    "iterators.tee_": "itertools.tee itertools._tee itertools._tee_dataobject",
    "numbers.decimal_": "decimal _decimal",
    "numbers.decimal_context": "decimal _decimal",
    "stdlib.ast_": "ast _ast",
    "stdlib.datetime_": "datetime",
    "stdlib.io_": (
        "_io.StringIO _io.BytesIO _io._IOBase.readlines _io._IOBase.writelines _io._IOBase.isatty _io._IOBase.flush"
        " _io._IOBase.__enter__ _io._IOBase.__exit__ _io._IOBase.__iter__"
    ),
    "stdlib.json_": "_json stator.models.rare.stdlib.json_.float_text",
    "stdlib.linecache_": "linecache",
    "stdlib.os_": "posix.stat posix.lstat posix.fspath _stat",
    "stdlib.thread_local": "_thread._local",
    "text.bytearray_": "builtins.bytearray builtins.bytearray_iterator",
    "text.memoryview_": "builtins.memoryview builtins.memory_iterator",
}

announce(__name__, INDEX)
