#include "recursion.h"

#include <algorithm>

#include "context.h"
#include "functions.h"

namespace stator {

namespace {

PyObject* call_within(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
    if (count < 2) {
        PyErr_SetString(PyExc_TypeError, "call_within() takes a depth and a function");
        return nullptr;
    }
    long depth = PyLong_AsLong(args[0]);
    if (PyErr_Occurred()) return nullptr;
    PyThreadState* thread = PyThreadState_Get();
    int before = calls_remaining(thread);
    MoreDepth less(thread, std::clamp(static_cast<int>(std::min(depth, static_cast<long>(before))), 0, before) - before);
    return PyObject_Vectorcall(args[1], args + 2, static_cast<size_t>(count - 2), names);
}

PyObject* calls_left(PyObject*, PyObject*) { return PyLong_FromLong(thread_context().calls_remaining); }

}  // namespace

PyMethodDef recursion_functions[] = {
    {"calls_left", calls_left, METH_NOARGS,
     "How many calls the program may nest below the frame that is traced"},
    {"call_within", as_method(call_within), METH_FASTCALL | METH_KEYWORDS,
     "call_within(depth, function, *args, **kwargs): the call, with a RecursionError beyond so many nested ones"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace stator
