// What CPython's dicts say about themselves beyond their public interface.
#pragma once
#include <cstdint>

#include "ref.h"

namespace stator {

// The version a dict has now: every change of any dict gives it one that no dict ever had.  0: not to be relied on.
uint64_t dict_version(PyObject* dict);

// Are all keys exact strings?  Then looking a string up runs no Python code.
bool has_plain_keys(PyObject* dict);

}  // namespace stator
