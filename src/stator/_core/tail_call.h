// A call that a target leaves to whoever runs it, so that it is made when the target's own frame is gone.
#pragma once
#include "context.h"
#include "region.h"
#include "state.h"

namespace stator {

// A function and its arguments. The arguments go to the function's frame: nothing else keeps them alive then.
struct TailCall {
    PyObject_VAR_HEAD
    PyObject* region;  // whose frames it meets when it is called; null: it is left to who runs the target
    PyObject* items[1];
};

extern PyType_Spec tail_call_spec;

inline bool is_tail_call(PyObject* result) { return result && Py_IS_TYPE(result, state.tail_call_type); }

// Whether the frame that begins is the one of the tail call being made; its arguments are its own from now on.
bool take_over_tail_call(Context& context, PyObject* function);

// The call of a frame that a resumed one goes on with, as a callable without arguments.
PyObject* make_resumed_call(PyObject* function, PyObject* arguments, Region* region);

PyObject* run_tail_calls(Context& context, Region* region, PyObject* result);

// Makes the call if `result` (stolen) is one, and those it leaves in its turn, in the region; gives the last result.
inline PyObject* finish_tail_calls(Context& context, Region* region, PyObject* result) {
    return is_tail_call(result) ? run_tail_calls(context, region, result) : result;
}

}  // namespace stator
