// Calls that may go only as deep as the traced program could: its tracer runs under a higher recursion limit.
#pragma once
#include "compat.h"

namespace stator {

// call_within(depth, function, *args, **kwargs): vectorcall
PyObject* call_within(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names);

}  // namespace stator
