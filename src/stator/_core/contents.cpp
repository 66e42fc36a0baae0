// What an object consists of, apart from which object it is.
#include "functions.h"
#include <algorithm>

namespace stator {

namespace {

PyObject* exchange(PyObject*, PyObject* const* args, Py_ssize_t count) {
    PyTypeObject* type = count == 2 ? Py_TYPE(args[0]) : nullptr;
    if (!type || Py_TYPE(args[1]) != type || !type->tp_iternext || !(type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE) ||
        type->tp_itemsize || type->tp_weaklistoffset || type->tp_dictoffset) {
        PyErr_SetString(PyExc_TypeError, "exchange() takes two iterators of one builtin type");
        return nullptr;
    }
    auto body = [](PyObject* object) { return reinterpret_cast<char*>(object) + sizeof(PyObject); };
    std::swap_ranges(body(args[0]), body(args[0]) + type->tp_basicsize - sizeof(PyObject), body(args[1]));
    Py_RETURN_NONE;
}

PyObject* has_buffer(PyObject*, PyObject* type) {
    if (!PyType_Check(type)) {
        PyErr_SetString(PyExc_TypeError, "has_buffer() takes a type");
        return nullptr;
    }
    const PyBufferProcs* procs = reinterpret_cast<PyTypeObject*>(type)->tp_as_buffer;
    return PyBool_FromLong(procs && procs->bf_getbuffer);
}

PyObject* is_generic_access(PyObject*, PyObject* slot) {
    if (!Py_IS_TYPE(slot, &PyWrapperDescr_Type)) Py_RETURN_FALSE;
    void* wrapped = reinterpret_cast<PyWrapperDescrObject*>(slot)->d_wrapped;
    return PyBool_FromLong(wrapped == reinterpret_cast<void*>(PyObject_GenericGetAttr) ||
                           wrapped == reinterpret_cast<void*>(PyObject_GenericSetAttr));
}

}  // namespace

PyMethodDef contents_functions[] = {
    {"exchange", as_method(exchange), METH_FASTCALL,
     "exchange(iterator, other): each of two iterators of one builtin type goes on where the other would have"},
    {"has_buffer", has_buffer, METH_O,
     "has_buffer(type): do its instances let others read their bytes?"},
    {"is_generic_access", is_generic_access, METH_O,
     "is_generic_access(slot): is it the ordinary __getattribute__, __setattr__ or __delattr__, under any type's name?"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace stator
