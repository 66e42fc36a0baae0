#include "tracebacks.h"

#include <frameobject.h>

#include <cstring>

#include "frames.h"
#include "functions.h"
#include "ref.h"
#include "versions.h"

namespace stator {

namespace {

bool starts_with(PyObject* text, const char* start) {
    Py_ssize_t size = 0;
    const char* chars = PyUnicode_AsUTF8AndSize(text, &size);
    if (!chars) PyErr_Clear();
    return chars && std::strncmp(chars, start, std::strlen(start)) == 0;
}

bool ends_with(PyObject* text, const char* end) {
    Py_ssize_t size = 0;
    const char* chars = PyUnicode_AsUTF8AndSize(text, &size);
    auto length = static_cast<Py_ssize_t>(std::strlen(end));
    if (!chars) PyErr_Clear();
    return chars && size >= length && std::strcmp(chars + size - length, end) == 0;
}

// Is it code of stator.bytecode.runtime?
bool is_of_runtime(PyCodeObject* code) { return ends_with(code->co_filename, "stator/bytecode/runtime.py"); }

Ref code_of(PyObject* traceback) {
    return Ref::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(reinterpret_cast<PyTracebackObject*>(traceback)->tb_frame)));
}

PyObject* next_of(PyObject* traceback) {
    return reinterpret_cast<PyObject*>(reinterpret_cast<PyTracebackObject*>(traceback)->tb_next);
}

bool is_generated(PyObject* traceback) {
    Ref code = code_of(traceback);
    return is_generated_code(reinterpret_cast<PyCodeObject*>(code.get()));
}

// Is it where generated code raises what the program has raised?
bool is_leaving(PyObject* traceback) {
    Ref code = code_of(traceback);
    auto object = reinterpret_cast<PyCodeObject*>(code.get());
    return is_of_runtime(object) && PyUnicode_CompareWithASCIIString(object->co_name, "leave_with") == 0;
}

// Where the program's own frames begin (borrowed, null: none has an entry), or `traceback` itself where nothing is to be
// left out.
PyObject* tidied(PyObject* traceback, PyCodeObject* own, bool from_tail_call) {
    PyObject* step = traceback;
    if (own) {
        Ref code = code_of(step);
        if (code.get() != reinterpret_cast<PyObject*>(own)) return traceback;
        step = next_of(step);
    }
    PyObject *first = step, *last = nullptr;
    for (; step && is_generated(step); step = next_of(step)) last = step;
    if (!step) return (last ? is_leaving(last) : from_tail_call) ? nullptr : traceback;
    return from_tail_call || step != first ? step : traceback;
}

}  // namespace

bool is_generated_code(PyCodeObject* code) {
    return starts_with(code->co_filename, "<stator ") || is_of_runtime(code);
}

// A frame object of `code` that has ended at the instruction at a byte offset, called by `back` (or null).  `variables`
// (or null): a function's by name, cells for those that it shares; the namespace of other code.  For the tracebacks of
// frames that were traced, and hence never ran.
PyObject* make_finished_frame(PyCodeObject* code, PyObject* globals, int offset, PyObject* back, PyObject* variables) {
    if (offset < 0 || offset >= Py_SIZE(code) * 2) {
        PyErr_SetString(PyExc_ValueError, "no instruction of this code object");
        return nullptr;
    }
    bool function = code->co_flags & CO_OPTIMIZED;
    Ref frame = Ref::steal(as_object(PyFrame_New(PyThreadState_Get(), code, globals, function ? nullptr : variables)));
    PyObject* named = function ? variables : nullptr;
    if (!frame || !end_frame_at(reinterpret_cast<PyFrameObject*>(frame.get()), offset, back, named)) return nullptr;
    return frame.release();
}

void tidy_traceback(PyCodeObject* own, bool from_tail_call) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    Ref whole = Ref::steal(traceback);
    PyObject* kept = traceback ? tidied(traceback, own, from_tail_call) : nullptr;
    // From 3.14 on, PyErr_Restore leaves the exception the traceback that it has where it is given none.
    if (value && !kept && !kExceptionsAreMadeLate) PyException_SetTraceback(value, Py_None);
    PyErr_Restore(type, value, Py_XNewRef(kept));
}

namespace {

PyObject* finished_frame(PyObject*, PyObject* args) {
    PyObject *code, *globals, *back, *variables;
    int offset;
    if (!PyArg_ParseTuple(args, "O!O!iOO:finished_frame", &PyCode_Type, &code, &PyDict_Type, &globals, &offset, &back,
                          &variables)) {
        return nullptr;
    }
    auto* made = reinterpret_cast<PyCodeObject*>(code);
    if (variables != Py_None && (made->co_flags & CO_OPTIMIZED) && !PyDict_Check(variables)) {
        PyErr_SetString(PyExc_TypeError, "the variables of a function are a dict or None");
        return nullptr;
    }
    if (back != Py_None && !PyFrame_Check(back)) {
        PyErr_SetString(PyExc_TypeError, "the caller of a frame is a frame or None");
        return nullptr;
    }
    return make_finished_frame(made, globals, offset, back == Py_None ? nullptr : back,
                               variables == Py_None ? nullptr : variables);
}

}  // namespace

PyMethodDef traceback_functions[] = {
    {"finished_frame", finished_frame, METH_VARARGS,
     "finished_frame(code, globals, offset, back, variables): a frame that has ended at the instruction at this byte offset"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace stator
