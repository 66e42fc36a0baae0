// Frames of CPython 3.12.
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

PyCodeObject* frame_code(Frame* frame) { return frame->f_code; }
PyObject* frame_function(Frame* frame) { return frame->f_funcobj; }
bool frame_is_on_thread_stack(Frame* frame) { return frame->owner == FRAME_OWNED_BY_THREAD; }

void enter_return_stub(Frame* frame, PyObject* result, PyObject* return_stub) {
    PyCodeObject* code = frame->f_code;
    frame->localsplus[frame->stacktop++] = result;
    frame->f_code = reinterpret_cast<PyCodeObject*>(Py_NewRef(return_stub));
    frame->prev_instr = _PyCode_CODE(frame->f_code) + kStubReturn - 1;
    Py_DECREF(code);
}

void place_frame(Frame* frame, int offset) {
    frame->prev_instr = _PyCode_CODE(frame_code(frame)) + offset / static_cast<int>(sizeof(_Py_CODEUNIT));
}

Frame* top_frame(PyThreadState* thread) { return thread->cframe->current_frame; }
void set_top_frame(PyThreadState* thread, Frame* frame) { thread->cframe->current_frame = frame; }

bool c_recursion_is_low(PyThreadState* thread) { return thread->c_recursion_remaining < C_RECURSION_LIMIT / 4; }

bool is_of_interpreter(Frame* frame) { return frame->owner == FRAME_OWNED_BY_CSTACK; }

void initialize_frame(Frame* frame, PyFunctionObject* function, PyCodeObject* code) {
    _PyFrame_Initialize(frame, function, nullptr, code, 0);
}

}  // namespace stator
