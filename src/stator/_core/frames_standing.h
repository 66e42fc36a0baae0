// Standing frames, as far as the versions share them; included by their files only.
#pragma once
#include <algorithm>
#include <cstring>

#include "frames_common.h"

namespace stator {

// What each version's file says.
bool is_of_interpreter(Frame* frame);  // one of CPython's own entries on the C stack
void initialize_frame(Frame* frame, PyFunctionObject* function, PyCodeObject* code);  // steals the function

inline size_t frame_header() { return offsetof(Frame, localsplus) / sizeof(PyObject*); }

size_t standing_frame_size(PyCodeObject* code) {
    // A Frame ends with the first variable, be there one or not.
    return frame_header() + static_cast<size_t>(std::max(code->co_nlocalsplus, 1));
}

Frame* frame_back(Frame* frame) {
    do {
        frame = frame->previous;
    } while (frame && is_of_interpreter(frame));
    return frame;
}

void begin_standing_frame(Frame* frame, PyObject* function, int offset, Frame* back) {
    auto* made = reinterpret_cast<PyFunctionObject*>(Py_NewRef(function));
    initialize_frame(frame, made, reinterpret_cast<PyCodeObject*>(made->func_code));
    frame->previous = back;
    place_frame(frame, offset);
}

bool fill_free_variables(Frame* frame) {
    PyCodeObject* code = frame_code(frame);
    for (int i = code->co_nlocalsplus - code->co_nfreevars; i < code->co_nlocalsplus; i++) {
        if (value_of(frame->localsplus[i])) continue;
        PyObject* cell = PyCell_New(nullptr);
        if (!cell) return false;
        set_frame_value(frame, i, cell);
    }
    return true;
}

// Copies a frame's contents, which then belong to the copy.
inline void copy_frame(Frame* from, Frame* to) {
#if STATOR_VARIABLES_ARE_TAGGED
    _PyFrame_Copy(from, to);
#else
    std::memcpy(static_cast<void*>(to), from, standing_frame_size(frame_code(from)) * sizeof(PyObject*));
#endif
}

// As CPython does when a frame ends whose object is held: the object gets the frame's contents, and the references.
void end_standing_frame(Frame* frame) {
    PyFrameObject* object = frame->frame_obj;
    if (!object || Py_REFCNT(object) == 1) return;
    object->f_back = PyFrame_GetBack(object);
    auto* own = reinterpret_cast<Frame*>(object->_f_frame_data);
    copy_frame(frame, own);
    own->owner = FRAME_OWNED_BY_FRAME_OBJECT;
    own->previous = nullptr;
    object->f_frame = own;
    if (!PyObject_GC_IsTracked(as_object(object))) PyObject_GC_Track(object);
}

void release_standing_frame(Frame* frame) {
    PyFrameObject* object = frame->frame_obj;
    bool moved = object && object->f_frame != frame;
    Ref code = Ref::steal(moved ? nullptr : as_object(frame_code(frame)));
    Ref function = Ref::steal(moved ? nullptr : frame_function(frame));
    Ref locals = Ref::steal(moved ? nullptr : frame->f_locals);
    int count = frame_code(frame)->co_nlocalsplus;
    Py_CLEAR(frame->frame_obj);
    for (int i = 0; !moved && i < count; i++) set_frame_value(frame, i, nullptr);
}

}  // namespace stator
