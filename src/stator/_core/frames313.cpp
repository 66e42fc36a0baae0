// Frames of CPython 3.13.
#include "frames.h"
#define Py_BUILD_CORE 1
extern "C" {
#include <internal/pycore_code.h>
#include <internal/pycore_frame.h>
}

#include "frames_common.h"
#include "frames_standing.h"
#include "return_stub.h"

namespace stator {

PyCodeObject* frame_code(Frame* frame) { return reinterpret_cast<PyCodeObject*>(frame->f_executable); }
PyObject* frame_function(Frame* frame) { return frame->f_funcobj; }
bool frame_is_on_thread_stack(Frame* frame) { return frame->owner == FRAME_OWNED_BY_THREAD; }

void enter_return_stub(Frame* frame, PyObject* result, PyObject* return_stub) {
    frame->localsplus[frame->stacktop++] = result;
    Py_SETREF(frame->f_executable, Py_NewRef(return_stub));
    frame->instr_ptr = _PyCode_CODE(frame_code(frame)) + kStubReturn;
}

void place_frame(Frame* frame, int offset) {
    frame->instr_ptr = _PyCode_CODE(frame_code(frame)) + offset / static_cast<int>(sizeof(_Py_CODEUNIT));
}

Frame* top_frame(PyThreadState* thread) { return thread->current_frame; }
void set_top_frame(PyThreadState* thread, Frame* frame) { thread->current_frame = frame; }

bool c_recursion_is_low(PyThreadState* thread) { return thread->c_recursion_remaining < Py_C_RECURSION_LIMIT / 4; }

bool is_of_interpreter(Frame* frame) { return frame->owner == FRAME_OWNED_BY_CSTACK; }

void initialize_frame(Frame* frame, PyFunctionObject* function, PyCodeObject* code) {
    _PyFrame_Initialize(frame, function, nullptr, code, 0);
}

}  // namespace stator
