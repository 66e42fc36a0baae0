// A code object shaped like another one whose body only returns the top of the stack, and leaving a frame by it: from
// CPython 3.12 on the evaluation function owns clearing the frame.  Included by the versions' files only.
//
// Leaving a frame at one of its own RETURN instructions would do too, but a function may have none that takes a
// stack value (RETURN_CONST), and an instrumented one would tell a profiler of a return without a call.
#pragma once
#include <opcode.h>

#include "frames_common.h"

namespace stator {

// The RETURN_VALUE's place in it: behind what is RESUME's inline cache on 3.15, and as good as any before.
constexpr int kStubReturn = 2;

inline bool make_return_stub(PyCodeObject* code, PyObject** return_stub) {
    if (*return_stub) return true;
    const unsigned char body[] = {RESUME, 0, RETURN_VALUE, 0, RETURN_VALUE, 0};
    Ref replace = Ref::steal(PyObject_GetAttrString(as_object(code), "replace"));
    Ref args = Ref::steal(PyTuple_New(0));
    Ref changes = Ref::steal(
        Py_BuildValue("{s:y#,s:y}", "co_code", body, Py_ssize_t{sizeof(body)}, "co_exceptiontable", ""));
    if (!replace || !args || !changes) return false;
    *return_stub = PyObject_Call(replace.get(), args.get(), changes.get());
    return *return_stub != nullptr;
}

// What each version's file says: pushes the result (stolen), and puts the frame at the stub's RETURN_VALUE.
void enter_return_stub(Frame* frame, PyObject* result, PyObject* return_stub);

// The default evaluation function does it, at a RETURN or at an exception.
PyObject* leave_frame(PyThreadState* thread, Frame* frame, PyObject* result, PyObject** return_stub) {
    if (result && !make_return_stub(frame_code(frame), return_stub)) Py_CLEAR(result);
    if (result) {
        enter_return_stub(frame, result, *return_stub);
    } else {
        prepare_to_raise(frame);
    }
    return _PyEval_EvalFrameDefault(thread, frame, !result);
}

}  // namespace stator
