// A call that a target leaves to whoever runs it, so that it is made when the target's own frame is gone.
#pragma once
#include "context.h"
#include "region.h"

namespace stator {

// A function and its arguments. The arguments go to the function's frame: nothing else keeps them alive then.
struct Tail {
    PyObject_VAR_HEAD
    PyObject* items[1];
};

extern PyType_Spec tail_spec;

// tail(function, *args): what a target returns instead of calling.
PyObject* make_tail(PyObject* module, PyObject* const* items, Py_ssize_t count);

bool is_tail(PyObject* result);

// Whether the frame that begins is the one of the tail call being made; its arguments are its own from now on.
bool take_over_tail(Context& context, PyObject* function);

// Makes the call if `result` (stolen) is one, and those it leaves in its turn, in the region; gives the last result.
PyObject* finish_tail(Context& context, Region* region, PyObject* result);

}  // namespace stator
