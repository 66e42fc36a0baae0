#include "tracing_suspended.h"

#include "functions.h"

namespace stator {

namespace {

// Whether it is an TracingSuspended that has suspended the thread's functions, and not one of these functions.
thread_local bool suspended = false;

}  // namespace

TracingSuspended::TracingSuspended() : entered_(!suspended && PyThreadState_Get()->tracing == 0) {
    if (!entered_) return;
    PyThreadState_EnterTracing(PyThreadState_Get());
    suspended = true;
}

TracingSuspended::~TracingSuspended() {
    if (!entered_) return;
    PyThreadState_LeaveTracing(PyThreadState_Get());
    suspended = false;
}

namespace {

PyObject* call_with_tracing(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
    if (count < 1) {
        PyErr_SetString(PyExc_TypeError, "call_with_tracing() takes a function");
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

}  // namespace

PyMethodDef tracing_functions[] = {
    {"call_with_tracing", as_method(call_with_tracing), METH_FASTCALL | METH_KEYWORDS,
     "call_with_tracing(function, *args, **kwargs): the call, shown to profilers and debuggers even while tracing"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace stator
