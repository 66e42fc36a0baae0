// A code object shaped like another one whose body only returns the top of the stack.
//
// Leaving a frame at one of its own RETURN instructions would do too, but a function may have none that takes a
// stack value (RETURN_CONST), and an instrumented one would tell a profiler of a return without a call.
#pragma once
#include <opcode.h>

#include "ref.h"

namespace stator {

// The RETURN_VALUE's place in it: behind what is RESUME's inline cache on 3.15, and as good as any before.
constexpr int kStandInReturn = 2;

inline bool make_stand_in(PyCodeObject* code, PyObject** stand_in) {
    if (*stand_in) return true;
    const unsigned char body[] = {RESUME, 0, RETURN_VALUE, 0, RETURN_VALUE, 0};
    Ref replace = Ref::steal(PyObject_GetAttrString(as_object(code), "replace"));
    Ref args = Ref::steal(PyTuple_New(0));
    Ref changes = Ref::steal(
        Py_BuildValue("{s:y#,s:y}", "co_code", body, Py_ssize_t{sizeof(body)}, "co_exceptiontable", ""));
    if (!replace || !args || !changes) return false;
    *stand_in = PyObject_Call(replace.get(), args.get(), changes.get());
    return *stand_in != nullptr;
}

}  // namespace stator
