#include "raising.h"

#include "functions.h"
#include "ref.h"

namespace stator {

namespace {

void restore(PyObject* exception) {
    PyErr_Restore(Py_NewRef(as_object(Py_TYPE(exception))), Py_NewRef(exception), PyException_GetTraceback(exception));
}

// `T(exception)` raises the exception.
PyObject* fail_with(PyTypeObject*, PyObject* args, PyObject*) {
    PyObject* exception = nullptr;
    if (PyArg_ParseTuple(args, "O!", PyExc_BaseException, &exception)) restore(exception);
    return nullptr;
}

// The type of an exception that cannot be made (borrowed; null with an exception set).
PyObject* unmakable() {
    static PyObject* type = nullptr;
    if (!type) {
        type = PyErr_NewException("stator.Unmakable", PyExc_BaseException, nullptr);
        if (type) reinterpret_cast<PyTypeObject*>(type)->tp_new = fail_with;
    }
    return type;
}

// Has the first handler raise it, where exceptions are made that late.
void restore_late(PyObject* exception) {
    if (!kExceptionsAreMadeLate) return restore(exception);
    if (PyObject* type = unmakable()) PyErr_Restore(Py_NewRef(type), Py_NewRef(exception), nullptr);
}

}  // namespace

void make_exception() {
    if (!kExceptionsAreMadeLate) return;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject* before = traceback;
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback == before) {
        PyErr_Restore(type, value, traceback);
        return;
    }
    Ref made = Ref::steal(value), its_type = Ref::steal(type), passed = Ref::steal(traceback);
    PyException_SetTraceback(made.get(), passed.get());
    restore_late(made.get());
}

namespace {

// With no __context__ and no traceback entry added; an exception in a tuple takes the place of another in the next
// handler, as one does with which making that other has failed.
PyObject* raise_unchanged(PyObject*, PyObject* exception) {
    bool late = PyTuple_CheckExact(exception) && PyTuple_GET_SIZE(exception) == 1;
    if (late) exception = PyTuple_GET_ITEM(exception, 0);
    if (!PyExceptionInstance_Check(exception)) {
        PyErr_SetString(PyExc_TypeError, "raise_unchanged() takes an exception, or a tuple of one");
    } else if (late) {
        restore_late(exception);
    } else {
        restore(exception);
    }
    return nullptr;
}

}  // namespace

PyMethodDef raising_functions[] = {
    {"raise_unchanged", raise_unchanged, METH_O,
     "raise_unchanged(exception): raises it as it is; in a tuple: in place of the one being raised, in the handler"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace stator
