#include "recursion.h"

#include <algorithm>

#include "context.h"

namespace stator {

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

}  // namespace stator
