// Standing frames, as far as the versions share them; included by their files only.
#pragma once
#include <cstring>

#include "frames.h"

namespace stator {

inline size_t frame_header() { return offsetof(Frame, localsplus) / sizeof(PyObject*); }

size_t standing_frame_size(PyCodeObject* code) { return frame_header() + static_cast<size_t>(code->co_nlocalsplus); }

Frame* frame_back(Frame* frame) {
    frame = frame->previous;
#if PY_VERSION_HEX >= 0x030c0000
    while (frame && frame->owner == FRAME_OWNED_BY_CSTACK) frame = frame->previous;
#endif
    return frame;
}

void begin_standing_frame(Frame* frame, PyObject* function, int offset, Frame* back) {
    auto* made = reinterpret_cast<PyFunctionObject*>(Py_NewRef(function));
    auto* code = reinterpret_cast<PyCodeObject*>(made->func_code);
#if PY_VERSION_HEX >= 0x030c0000
    _PyFrame_Initialize(frame, made, nullptr, code, 0);
#else
    _PyFrame_InitializeSpecials(frame, made, nullptr, code->co_nlocalsplus);
    for (int i = 0; i < code->co_nlocalsplus; i++) frame->localsplus[i] = nullptr;
#endif
    frame->previous = back;
    place_frame(frame, offset);
}

bool fill_free_variables(PyCodeObject* code, PyObject** slots) {
    for (int i = code->co_nlocalsplus - code->co_nfreevars; i < code->co_nlocalsplus; i++) {
        if (!slots[i] && !(slots[i] = PyCell_New(nullptr))) return false;
    }
    return true;
}

// As CPython does when a frame ends whose object is held: the object gets the frame's contents, and the references.
void end_standing_frame(Frame* frame) {
    PyFrameObject* object = frame->frame_obj;
    if (!object || Py_REFCNT(object) == 1) return;
    object->f_back = PyFrame_GetBack(object);
    auto* own = reinterpret_cast<Frame*>(object->_f_frame_data);
    std::memcpy(static_cast<void*>(own), frame, standing_frame_size(frame_code(frame)) * sizeof(PyObject*));
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
    for (int i = 0; !moved && i < count; i++) Py_CLEAR(frame->localsplus[i]);
}

}  // namespace stator
