// Frames of CPython 3.14.
#include "frames.h"
#define Py_BUILD_CORE 1
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
extern "C" {
#include <internal/pycore_frame.h>
#include <internal/pycore_interpframe.h>
#include <internal/pycore_tstate.h>
}
#pragma GCC diagnostic pop
#include "frames_common.h"
#include "frames_standing.h"
#include "return_stub.h"

namespace stator {

PyCodeObject* frame_code(Frame* frame) { return _PyFrame_GetCode(frame); }
PyObject* frame_function(Frame* frame) { return PyStackRef_AsPyObjectBorrow(frame->f_funcobj); }
bool frame_is_on_thread_stack(Frame* frame) { return frame->owner == FRAME_OWNED_BY_THREAD; }

void enter_return_stub(Frame* frame, PyObject* result, PyObject* return_stub) {
    _PyFrame_StackPush(frame, PyStackRef_FromPyObjectSteal(result));
    assign(frame->f_executable, Py_NewRef(return_stub));
    frame->instr_ptr = _PyFrame_GetBytecode(frame) + kStubReturn;
}

void place_frame(Frame* frame, int offset) {
    frame->instr_ptr = _PyFrame_GetBytecode(frame) + offset / static_cast<int>(sizeof(_Py_CODEUNIT));
}

Frame* top_frame(PyThreadState* thread) { return thread->current_frame; }
void set_top_frame(PyThreadState* thread, Frame* frame) { thread->current_frame = frame; }

// The limit is an address in the C stack.
bool c_recursion_is_low(PyThreadState* thread) {
    auto* own = reinterpret_cast<_PyThreadStateImpl*>(thread);
    uintptr_t quarter = (own->c_stack_top - own->c_stack_soft_limit) / 4;
    return reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) < own->c_stack_soft_limit + quarter;
}

bool is_of_interpreter(Frame* frame) { return frame->owner >= FRAME_OWNED_BY_INTERPRETER; }

void initialize_frame(Frame* frame, PyFunctionObject* function, PyCodeObject* code) {
    _PyFrame_Initialize(PyThreadState_Get(), frame, PyStackRef_FromPyObjectSteal(as_object(function)), nullptr, code, 0,
                        nullptr);
}

}  // namespace stator
