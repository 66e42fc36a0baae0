"""Codecs: text is encoded and decoded for real, unless a codec or error handler of the program's has a part in it."""

from __future__ import annotations

import codecs
import encodings
import encodings.aliases
import gc
import pkgutil
import types

from stator.guards.guard import Predicate
from stator.guards.source import ConstSource
from stator.space.host_types import Host
from stator.space.operands import refuse_use
from stator.space.protocol import folds_if, pure
from stator.space.space import Space

#: what the standard library has codecs for; its search function is asked first
_STANDARD = frozenset(module.name for module in pkgutil.iter_modules(encodings.__path__))
_STANDARD |= encodings.aliases.aliases.keys()

pure(codecs.encode, codecs.decode)


def _is_unhandled(name: str) -> bool:
    try:
        codecs.lookup_error(name)
    except LookupError:
        return True
    return False


_searches: list[list[Host]] = []


def _search_functions() -> list[Host]:
    """The interpreter's list of search functions, which nothing but the collector leads to; or none."""
    if not _searches:
        lists = [found for found in gc.get_referrers(encodings.search_function) if type(found) is list]
        _searches.extend(found for found in lists if found[:1] == [encodings.search_function])
    return _searches[0] if len(_searches) == 1 else []


def _is_standard(searches: list[Host]) -> bool:
    return searches == [encodings.search_function]


@folds_if(str, bytes, bytearray, str.encode, bytes.decode, bytearray.decode, codecs.encode, codecs.decode)
def standard_codecs(space: Space, args: list[Host], kwargs: dict[str, Host]) -> None:
    """What codecs and error handlers of the program's do is not known, nor when they are registered."""
    given = dict(zip(("encoding", "errors"), args[1:], strict=False)) | kwargs
    encoding, errors = given.get("encoding"), given.get("errors")
    if isinstance(encoding, str) and encodings.normalize_encoding(encoding).lower() not in _STANDARD:
        searches = _search_functions()
        if not _is_standard(searches):
            raise refuse_use("codecs.lookup", f"of {encoding!r}")
        source = ConstSource(searches, "the search functions of codecs")
        space.trace.guard(Predicate((source,), _is_standard, "no codec is the program's own"))
    if not isinstance(errors, str):
        return
    if _is_unhandled(errors):
        space.trace.guard(
            Predicate((ConstSource(errors, repr(errors)),), _is_unhandled, f"{errors!r} handles no errors")
        )
    elif type(codecs.lookup_error(errors)) is not types.BuiltinFunctionType:
        raise refuse_use("codecs.lookup_error", f"of {errors!r}")
