"""What differs between the CPython versions, apart from their bytecode: a name and a sentence for each fact.

A model asks for the fact, never for the version: `if SLICES_HASH:`. Who adds a CPython reads this page from top to
bottom and adds what is new at the end. Where CPython itself can be asked, no fact is needed: its words for an error are
got by `host.words`, and a function that a version lacks is found by `hasattr`.
"""

from __future__ import annotations

import sys


def since(*version: int) -> bool:
    """Whether this CPython is that version or a later one."""
    return sys.version_info[: len(version)] >= version


# -- 3.12 -------------------------------------------------------------------------------------------------------------

WEAK_REFERENCES_BEFORE_OBJECTS = since(3, 12)
"""The list of an instance's weak references lies before the object, as its dict has since 3.11, and not inside."""

SUM_COMPENSATES = since(3, 12)
"""`sum` of floats carries the rounding error along."""

SORT_TAKES_TRUTH = since(3, 12)
"""`list.sort(reverse=...)` takes any object's truth, and no longer a C int."""

SLICES_HASH = since(3, 12)
"""A slice has the hash of its members."""

ORDERED_DICTS_SHOW_A_DICT = since(3, 12)
"""The repr of an OrderedDict shows a dict, and no longer a list of pairs."""

ORDERED_DICTS_NOTICE_CHANGES = since(3, 12, 4)
"""A comparison of OrderedDicts raises when comparing the items has changed one of them."""

ITERTOOLS_COPIES_WARN = since(3, 12)
"""Copying or pickling an iterator of `itertools` warns that this will end."""

TYPE_PARAMETERS = since(3, 12)
"""There are type parameters and type aliases (PEP 695), whose parts are evaluated when they are asked for."""

PROPERTY_DOC_MUST_FIT = since(3, 12)
"""A subclass's property keeps even a documentation that its getter did not give as an attribute of the instance."""

SET_NAME_ADDS_A_NOTE = since(3, 12)
"""What a `__set_name__` raises gets a note, and is no longer wrapped in a RuntimeError."""

MODULE_CALLS_GIVE_HINTS = since(3, 12)
"""The error for calling a module guesses what the program means."""

BODIES_CONVERT_STOP_ITERATION = since(3, 12)
"""The code of a generator itself makes a RuntimeError of a StopIteration; the frame's caller has done it before."""

THROW_WARNS_OF_PARTS = since(3, 12)
"""`throw(type, value, traceback)` is deprecated."""

CACHED_PROPERTIES_LOCK = not since(3, 12)
"""`functools.cached_property` takes a lock."""

HANDLED_EXCEPTION_CHANGES_MERGE_ERROR = not since(3, 12)
"""Where an exception is being handled, `f(**a, **b)` with a key twice raises a KeyError: only one without a context is
reworded."""

EXCEPT_STAR_COPIES_THE_REST = since(3, 12)
"""What `except*` leaves over where nothing matches is a copy that `split` has made, and not the group itself."""

INVERTED_BOOL_WARNS = since(3, 12)
"""`~True` is deprecated."""

# -- 3.13 -------------------------------------------------------------------------------------------------------------

TYPES_NAMED_IN_FULL = since(3, 13)
"""Many messages and texts name a type by its module and qualified name (`%T`): of weak references, of partial objects,
of an attribute in `__slots__` that is not set."""

WEAK_PROXIES_SHOW_LIKE_REFERENCES = since(3, 13)
"""The repr of a weak proxy separates the referent's type by a semicolon, and quotes it."""

LIST_ITERATORS_END_BELOW = since(3, 13)
"""Any negative position ends a list iterator that is set to it."""

TYPE_PARAMETER_DEFAULTS = since(3, 13)
"""Type parameters have defaults (PEP 696)."""

PROPERTIES_ARE_NAMED_BY_GETTERS = since(3, 13)
"""A property has a `__name__`, which is that of its getter where none was given."""

CLASS_METHODS_CHAIN = not since(3, 13)
"""`classmethod` asks what it wraps for its `__get__`."""

SUPER_NAMES_THE_OBJECT = since(3, 13)
"""`super(cls, obj)` says which object it refuses."""

SUBCLASS_HOOK_COUNTS_ARGUMENTS = since(3, 13)
"""`object.__subclasshook__` takes one argument, and no longer any number."""

CLASSES_KNOW_THEIR_LINE = since(3, 13)
"""A class has a `__firstlineno__`, which goes when it is given another `__module__`."""

NO_DICT_IS_SAID = since(3, 13)
"""The error for setting an attribute says if the object has no `__dict__`."""

FRAME_LOCALS_ARE_A_VIEW = since(3, 13)
"""`frame.f_locals` writes through (PEP 667); one dict, brought up to date when asked for, has shown them before."""

CLOSE_RETURNS_A_VALUE = since(3, 13)
"""`generator.close()` returns what the generator returns."""

FUNCTIONS_TAKE_KEYWORD_DEFAULTS = since(3, 13)
"""`types.FunctionType` takes `kwdefaults`."""

CHANGED_KIND_OF_CODE_WARNS = since(3, 13)
"""Giving a function code of another kind (a generator's, say) is deprecated."""

ASYNC_STEPS_THROW_FIRST = since(3, 13)
"""A step of an asynchronous generator that was never awaited may be thrown into; closing it throws GeneratorExit."""

ASYNC_STEPS_WARN = since(3, 13)
"""A step of an asynchronous generator that was never awaited is warned about when it is let go of."""

# -- 3.14 -------------------------------------------------------------------------------------------------------------

LAZY_ANNOTATIONS = since(3, 14)
"""Annotations are evaluated when they are first asked for, by a function `__annotate__` (PEP 649)."""

ITERTOOLS_ARE_COPIED = not since(3, 14)
"""The iterators of `itertools` can be copied and pickled, and be set to a state."""

AWAITING_NAMES_THE_TYPE_FIRST = since(3, 14)
"""The error for awaiting what can't be is `'int' object can't be awaited`."""

INT_TRUNCATES = not since(3, 14)
"""`int` asks an object for its `__trunc__`."""

SEARCHES_SHOW_THE_ITEM = not since(3, 14)
"""`list.index`, `deque.index` and `deque.remove` show in the error what they have not found."""

UNHASHABLE_KEYS_ARE_NAMED = since(3, 14)
"""Dicts and sets word the error for a key without a hash anew: `cannot use 'list' as a dict key (unhashable ...)`."""

MERGING_ADDS_A_NOTE = since(3, 14)
"""`dict([3])` says in a note which element is no pair, and no longer in the words of another error."""

C_STACK_IS_MEASURED = since(3, 14)
"""How deep C code may call itself depends on the bytes of the C stack, and the error tells how many these are."""

TUPLES_KEEP_THEIR_HASH = since(3, 14)
"""A tuple asks its items for their hashes once."""

NONE_STOPS_LIKE_ANY_VALUE = since(3, 14)
"""The StopIteration by which an asynchronous generator yields None, and `anext` gives a default of None, has it as an
argument, as that of a generator's result never has."""

UNIONS_TAKE_ANYTHING = since(3, 14)
"""What is united with a union need be no type."""

UNPACKING_SAYS_HOW_MANY = since(3, 14)
"""`a, b = [1, 2, 3]` says how many values it has got, where the right side knows its length."""

NOT_IMPLEMENTED_HAS_NO_TRUTH = since(3, 14)
"""`bool(NotImplemented)` is an error."""

WARNINGS_LOCK = since(3, 14)
"""The module `warnings` changes its filters under a lock of its own."""

TEMPLATES = since(3, 14)
"""There are t-strings (PEP 750), which make the objects of `string.templatelib`."""
