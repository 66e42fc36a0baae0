// Writing to dicts without hashing or comparing their keys: both may run methods of the program.
#pragma once
#include "ref.h"

namespace stator {

// dict_hashes(d) -> the hashes that the dict has stored with its keys, in order
PyObject* dict_hashes(PyObject*, PyObject* dict);

// write_dict(d, deleted, keys, items, hashes) -> d: deletes keys, which are the dict's own, and assigns items in order.
// A hash of None is computed.  Fastcall
PyObject* write_dict(PyObject*, PyObject* const* args, Py_ssize_t count);

}  // namespace stator
