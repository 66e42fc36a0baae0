#include "unseen.h"

namespace stator {

namespace {

// Whether it is an Unseen that has suspended the thread's functions, and not one of these functions.
thread_local bool suspended = false;

}  // namespace

Unseen::Unseen() : entered_(!suspended && PyThreadState_Get()->tracing == 0) {
    if (!entered_) return;
    PyThreadState_EnterTracing(PyThreadState_Get());
    suspended = true;
}

Unseen::~Unseen() {
    if (!entered_) return;
    PyThreadState_LeaveTracing(PyThreadState_Get());
    suspended = false;
}

PyObject* call_seen(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
    if (count < 1) {
        PyErr_SetString(PyExc_TypeError, "call_seen() takes a function");
        return nullptr;
    }
    bool was_suspended = suspended;
    if (was_suspended) {
        PyThreadState_LeaveTracing(PyThreadState_Get());
        suspended = false;
    }
    PyObject* result = PyObject_Vectorcall(args[0], args + 1, static_cast<size_t>(count - 1), names);
    if (was_suspended) {
        PyThreadState_EnterTracing(PyThreadState_Get());
        suspended = true;
    }
    return result;
}

}  // namespace stator
