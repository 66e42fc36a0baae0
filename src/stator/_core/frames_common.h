// What the versions' files share; included by them only, after CPython's internal frame header.
#pragma once
#include "frames.h"

namespace stator {

// Does by hand what the frame's first instructions would (COPY_FREE_VARS, MAKE_CELL), so that a frame object made
// for a traceback finds the variables it expects.
inline bool finish_variables(PyCodeObject* code, PyObject* function, PyObject** slots) {
    Py_ssize_t first_free = code->co_nlocalsplus - code->co_nfreevars;
    const char* kinds = PyBytes_AS_STRING(code->co_localspluskinds);
    for (Py_ssize_t i = 0; i < first_free; i++) {
        if (!(kinds[i] & CO_FAST_CELL)) continue;
        PyObject* cell = PyCell_New(slots[i]);
        if (!cell) return false;
        Py_XSETREF(slots[i], cell);
    }
    PyObject* closure = PyFunction_GET_CLOSURE(function);
    for (int i = 0; closure && i < code->co_nfreevars; i++) {
        Py_XSETREF(slots[first_free + i], Py_NewRef(PyTuple_GET_ITEM(closure, i)));
    }
    return true;
}

// Before raising from an unstarted frame: its variables made, the exception that is set kept.
inline void prepare_to_raise(PyCodeObject* code, PyObject* function, PyObject** slots) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    bool done = finish_variables(code, function, slots);
    if (!done) PyErr_Clear();
    PyErr_Restore(type, value, traceback);
}

// Gives a variable its value: in a cell, which `value` may be itself, where functions share the variable.
inline bool set_variable(PyObject** slot, char kind, PyObject* value) {
    bool shared = kind & (CO_FAST_CELL | CO_FAST_FREE);
    PyObject* held = shared && !PyCell_Check(value) ? PyCell_New(value) : Py_NewRef(value);
    if (!held) return false;
    Py_XSETREF(*slot, held);
    return true;
}

// The rest of `end_frame_at`: who has called the frame, what its variables hold (a dict by name, or null), and cells
// where its code has COPY_FREE_VARS put some.
inline bool finish_frame_object(PyFrameObject* object, PyCodeObject* code, PyObject* back, PyObject* variables) {
    object->f_back = reinterpret_cast<PyFrameObject*>(Py_XNewRef(back));
    PyObject** slots = object->f_frame->localsplus;
    const char* kinds = PyBytes_AS_STRING(code->co_localspluskinds);
    for (int i = 0; variables && i < code->co_nlocalsplus; i++) {
        PyObject* value = PyDict_GetItemWithError(variables, PyTuple_GET_ITEM(code->co_localsplusnames, i));
        if (value ? !set_variable(&slots[i], kinds[i], value) : PyErr_Occurred() != nullptr) return false;
    }
    return fill_free_variables(code, slots);
}

}  // namespace stator
