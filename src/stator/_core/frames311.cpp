// Frames of CPython 3.11.
#include "frames.h"
#define Py_BUILD_CORE 1
extern "C" {
#include <internal/pycore_code.h>
#include <internal/pycore_frame.h>
}

#include "frames_common.h"
#include "frames_standing.h"

namespace stator {

PyCodeObject* frame_code(Frame* frame) { return frame->f_code; }
PyObject* frame_function(Frame* frame) { return as_object(frame->f_func); }
bool frame_is_on_thread_stack(Frame* frame) { return frame->owner == FRAME_OWNED_BY_THREAD; }

// The caller of the evaluation function clears the frame, so a result is just returned.
PyObject* leave_frame(PyThreadState* thread, Frame* frame, PyObject* result, PyObject**) {
    if (result) return result;
    prepare_to_raise(frame);
    return _PyEval_EvalFrameDefault(thread, frame, 1);
}

void place_frame(Frame* frame, int offset) {
    frame->prev_instr = _PyCode_CODE(frame_code(frame)) + offset / static_cast<int>(sizeof(_Py_CODEUNIT));
}

Frame* top_frame(PyThreadState* thread) { return thread->cframe->current_frame; }
void set_top_frame(PyThreadState* thread, Frame* frame) { thread->cframe->current_frame = frame; }

// One counter for Python and C recursion: the stack itself is looked at instead (hook.cpp).
bool c_recursion_is_low(PyThreadState*) { return false; }

bool is_of_interpreter(Frame*) { return false; }

void initialize_frame(Frame* frame, PyFunctionObject* function, PyCodeObject* code) {
    _PyFrame_InitializeSpecials(frame, function, nullptr, code->co_nlocalsplus);
    for (int i = 0; i < code->co_nlocalsplus; i++) frame->localsplus[i] = nullptr;
}

}  // namespace stator
