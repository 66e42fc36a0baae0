// What the versions' files share; included by them only, after CPython's internal frame header.
#pragma once
#include "frames.h"
#include "versions.h"

namespace stator {

// Where a generator has its frame.
inline Frame* frame_of_generator(PyGenObject* generator) {
#if STATOR_GENERATORS_HAVE_FRAMES
    return &generator->gi_iframe;
#else
    return reinterpret_cast<Frame*>(generator->gi_iframe);
#endif
}

// A variable's place in a frame.
#if STATOR_VARIABLES_ARE_TAGGED
using Variable = _PyStackRef;

inline PyObject* value_of(Variable variable) {
    return PyStackRef_IsNull(variable) ? nullptr : PyStackRef_AsPyObjectBorrow(variable);
}

inline void assign(Variable& variable, PyObject* value) {
    Variable old = std::exchange(variable, value ? PyStackRef_FromPyObjectSteal(value) : PyStackRef_NULL);
    PyStackRef_XCLOSE(old);
}

PyObject* const* frame_values(Frame* frame, Py_ssize_t count, ValueRoom& room) {
    PyObject** values = room.reserve(count);
    for (Py_ssize_t i = 0; i < count; i++) values[i] = value_of(frame->localsplus[i]);
    return values;
}
#else
using Variable = PyObject*;

inline PyObject* value_of(Variable variable) { return variable; }

inline void assign(Variable& variable, PyObject* value) { Py_XSETREF(variable, value); }

PyObject* const* frame_values(Frame* frame, Py_ssize_t, ValueRoom&) { return frame->localsplus; }
#endif

void set_frame_value(Frame* frame, Py_ssize_t index, PyObject* value) { assign(frame->localsplus[index], value); }

bool closing_shows(PyObject* suspended) {
    auto* generator = reinterpret_cast<PyGenObject*>(suspended);
    int state = generator->gi_frame_state;
    if (state >= FRAME_EXECUTING) return false;  // or it has ended
    if (state == FRAME_CREATED) return Py_IS_TYPE(suspended, &PyCoro_Type);
    return PyBytes_GET_SIZE(frame_code(frame_of_generator(generator))->co_exceptiontable) > 0;
}

// Does by hand what the frame's first instructions would (COPY_FREE_VARS, MAKE_CELL), so that a frame object made
// for a traceback finds the variables it expects.
inline bool finish_variables(Frame* frame) {
    PyCodeObject* code = frame_code(frame);
    Py_ssize_t first_free = code->co_nlocalsplus - code->co_nfreevars;
    const char* kinds = PyBytes_AS_STRING(code->co_localspluskinds);
    for (Py_ssize_t i = 0; i < first_free; i++) {
        if (!(kinds[i] & CO_FAST_CELL)) continue;
        PyObject* cell = PyCell_New(value_of(frame->localsplus[i]));
        if (!cell) return false;
        set_frame_value(frame, i, cell);
    }
    PyObject* closure = PyFunction_GET_CLOSURE(frame_function(frame));
    for (int i = 0; closure && i < code->co_nfreevars; i++) {
        set_frame_value(frame, first_free + i, Py_NewRef(PyTuple_GET_ITEM(closure, i)));
    }
    return true;
}

// Before raising from an unstarted frame: its variables made, the exception that is set kept.
inline void prepare_to_raise(Frame* frame) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    bool done = finish_variables(frame);
    if (!done) PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    place_frame(frame, frame_code(frame)->_co_firsttraceable * static_cast<int>(sizeof(_Py_CODEUNIT)));
}

// Gives a variable its value: in a cell, which `value` may be itself, where functions share the variable.
inline bool set_variable(Variable& variable, char kind, PyObject* value) {
    bool shared = kind & (CO_FAST_CELL | CO_FAST_FREE);
    PyObject* held = shared && !PyCell_Check(value) ? PyCell_New(value) : Py_NewRef(value);
    if (!held) return false;
    assign(variable, held);
    return true;
}

bool end_frame_at(PyFrameObject* object, int offset, PyObject* back, PyObject* variables) {
    Frame* frame = object->f_frame;
    place_frame(frame, offset);
    object->f_back = reinterpret_cast<PyFrameObject*>(Py_XNewRef(back));
    PyCodeObject* code = frame_code(frame);
    const char* kinds = PyBytes_AS_STRING(code->co_localspluskinds);
    for (int i = 0; variables && i < code->co_nlocalsplus; i++) {
        PyObject* value = PyDict_GetItemWithError(variables, PyTuple_GET_ITEM(code->co_localsplusnames, i));
        if (value ? !set_variable(frame->localsplus[i], kinds[i], value) : PyErr_Occurred() != nullptr) return false;
    }
    return fill_free_variables(frame);
}

}  // namespace stator
