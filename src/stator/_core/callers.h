// Frames for those who look: a call made by generated code shows the frames of the program that it stands for.
#pragma once
#include "versions.h"

namespace stator {

// called_from(frames, values, function, *args, **kwargs): the call, as if made by these frames.  Vectorcall
// `frames`: a tuple, outermost first, of (function, byte offset of the instruction, slots that have a value);
// `values`: of all these slots.
PyObject* called_from(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names);

// apply(function, args[, kwargs]): the call with this very tuple, as CALL_FUNCTION_EX makes it.  Fastcall
PyObject* apply(PyObject*, PyObject* const* args, Py_ssize_t count);

}  // namespace stator
