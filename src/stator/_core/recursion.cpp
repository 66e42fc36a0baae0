#include "recursion.h"

#include <algorithm>

namespace stator {

namespace {

// How many calls of Python functions the thread may still nest; in 3.11 calls of C functions count too.
int& remaining(PyThreadState* thread) {
#if PY_VERSION_HEX >= 0x030c0000
    return thread->py_recursion_remaining;
#else
    return thread->recursion_remaining;
#endif
}

}  // namespace

PyObject* call_within(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
    if (count < 2) {
        PyErr_SetString(PyExc_TypeError, "call_within() takes a depth and a function");
        return nullptr;
    }
    long depth = PyLong_AsLong(args[0]);
    if (PyErr_Occurred()) return nullptr;
    PyThreadState* thread = PyThreadState_Get();
    int before = remaining(thread);
    int taken = std::max(0, before - static_cast<int>(std::clamp(depth, 0L, static_cast<long>(before))));
    remaining(thread) -= taken;
    PyObject* result = PyObject_Vectorcall(args[1], args + 2, static_cast<size_t>(count - 2), names);
    remaining(thread) += taken;
    return result;
}

}  // namespace stator
