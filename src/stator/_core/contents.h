// What an object consists of, apart from which object it is.
#pragma once
#include "ref.h"

namespace stator {

// exchange(iterator, other): each of two iterators of one builtin type goes on where the other would have.  Fastcall
PyObject* exchange(PyObject*, PyObject* const* args, Py_ssize_t count);

// has_buffer(type): do its instances let others read their bytes?
PyObject* has_buffer(PyObject*, PyObject* type);

// is_generic_access(slot): does it wrap PyObject_GenericGetAttr or PyObject_GenericSetAttr?
PyObject* is_generic_access(PyObject*, PyObject* slot);

}  // namespace stator
