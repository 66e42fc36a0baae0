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
PyObject** frame_slots(Frame* frame) { return frame->localsplus; }
bool frame_is_on_thread_stack(Frame* frame) { return frame->owner == FRAME_OWNED_BY_THREAD; }

// The caller of the evaluation function clears the frame, so a result is just returned.
PyObject* leave_frame(PyThreadState* thread, Frame* frame, PyObject* result, PyObject**) {
    if (result) return result;
    PyCodeObject* code = frame->f_code;
    prepare_to_raise(code, frame_function(frame), frame->localsplus);
    frame->prev_instr = _PyCode_CODE(code) + code->_co_firsttraceable;
    return _PyEval_EvalFrameDefault(thread, frame, 1);
}

void place_frame(Frame* frame, int offset) {
    frame->prev_instr = _PyCode_CODE(frame_code(frame)) + offset / static_cast<int>(sizeof(_Py_CODEUNIT));
}

bool end_frame_at(PyFrameObject* object, int offset, PyObject* back, PyObject* variables) {
    place_frame(object->f_frame, offset);
    return finish_frame_object(object, frame_code(object->f_frame), back, variables);
}

Frame* top_frame(PyThreadState* thread) { return thread->cframe->current_frame; }
void set_top_frame(PyThreadState* thread, Frame* frame) { thread->cframe->current_frame = frame; }

// One counter for Python and C recursion: the stack itself is looked at instead (hook.cpp).
bool c_recursion_is_low(PyThreadState*) { return false; }

}  // namespace stator
