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

bool end_frame_at(PyFrameObject* object, int offset, PyObject* back, PyObject* variables) {
    Frame* frame = object->f_frame;
    frame->prev_instr = _PyCode_CODE(frame_code(frame)) + offset / static_cast<int>(sizeof(_Py_CODEUNIT));
    return finish_frame_object(object, frame_code(frame), back, variables);
}

Frame* top_frame(PyThreadState* thread) { return thread->cframe->current_frame; }
void set_top_frame(PyThreadState* thread, Frame* frame) { thread->cframe->current_frame = frame; }
Frame* frame_back(Frame* frame) { return frame->previous; }

void begin_standing_frame(Frame* frame, PyObject* function, int offset, Frame* back) {
    auto* made = reinterpret_cast<PyFunctionObject*>(Py_NewRef(function));
    auto* code = reinterpret_cast<PyCodeObject*>(made->func_code);
    _PyFrame_InitializeSpecials(frame, made, nullptr, code->co_nlocalsplus);
    for (int i = 0; i < code->co_nlocalsplus; i++) frame->localsplus[i] = nullptr;
    frame->previous = back;
    frame->prev_instr = _PyCode_CODE(code) + offset / static_cast<int>(sizeof(_Py_CODEUNIT));
}

// One counter for Python and C recursion: the stack itself is looked at instead (hook.cpp).
bool c_recursion_is_low(PyThreadState*) { return false; }

}  // namespace stator
