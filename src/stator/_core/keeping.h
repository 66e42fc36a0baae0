// Keeping what lies in the memory of small tensors, to be put back if a graph that writes them fails.
//
// A plan says of each tensor what it is: data type, device, dispatch keys, size of an element.  What is kept are the
// elements of all of them, one after the other, in a bytes object that belongs to the call.  Tensors that are not as the
// plan says are left to Python: see pytorch/graph/undo.py.
#pragma once
#include "ref.h"

namespace stator {

// plan_keeping(tensors, itemsizes): the plan for tensors in the memory of the CPU, or None.  Fastcall
PyObject* plan_keeping(PyObject* module, PyObject* const* args, Py_ssize_t count);

// keep_contents(plan, tensors): what lies in their memory, or None.  Fastcall
PyObject* keep_contents(PyObject* module, PyObject* const* args, Py_ssize_t count);

// put_contents_back(plan, tensors, kept): False, and nothing is written, if a tensor is not what it was.  Fastcall
PyObject* put_contents_back(PyObject* module, PyObject* const* args, Py_ssize_t count);

}  // namespace stator
