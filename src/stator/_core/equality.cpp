#include "equality.h"

#include <structmember.h>

#include <bit>
#include <cstdint>

#include "loads.h"

namespace stator {

namespace {

bool same_bits(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

bool same_items(PyObject* a, PyObject* b) {
    Py_ssize_t count = PyTuple_GET_SIZE(a);
    if (count != PyTuple_GET_SIZE(b)) return false;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!same_value(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
    }
    return true;
}

// Lists and dicts may change while their elements are compared: copies are compared.
bool same_copies(PyObject* a, PyObject* b) {  // steals both
    Ref left = Ref::steal(a ? PyList_AsTuple(a) : nullptr), right = Ref::steal(b ? PyList_AsTuple(b) : nullptr);
    Py_XDECREF(a);
    Py_XDECREF(b);
    if (left && right) return same_items(left.get(), right.get());
    forget_exception();
    return false;
}

bool is_among(PyObject* value, PyObject* items) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items); i++) {
        if (same_value(value, PyTuple_GET_ITEM(items, i))) return true;
    }
    return false;
}

bool same_set(PyObject* a, PyObject* b) {
    if (PySet_GET_SIZE(a) != PySet_GET_SIZE(b)) return false;
    Ref left = Ref::steal(PySequence_Tuple(a)), right = Ref::steal(PySequence_Tuple(b));
    if (!left || !right) {
        forget_exception();
        return false;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(right.get()); i++) {
        if (!is_among(PyTuple_GET_ITEM(right.get(), i), left.get())) return false;
    }
    return true;
}

bool same_attribute(PyObject* a, PyObject* b, const char* name) {
    Ref left = Ref::steal(PyObject_GetAttrString(a, name)), right = Ref::steal(PyObject_GetAttrString(b, name));
    if (left && right) return same_value(left.get(), right.get());
    forget_exception();
    return false;
}

bool same_slice(PyObject* a, PyObject* b) {
    return same_attribute(a, b, "start") && same_attribute(a, b, "stop") && same_attribute(a, b, "step");
}

bool equal(PyObject* a, PyObject* b) {
    int answer = PyObject_RichCompareBool(a, b, Py_EQ);
    if (answer < 0) forget_exception();
    return answer > 0;
}

}  // namespace

bool same_value(PyObject* a, PyObject* b) {
    PyTypeObject* type = Py_TYPE(b);
    if (Py_TYPE(a) != type) return false;
    if (a == b) return true;
    if (type == &PyUnicode_Type) return PyUnicode_Compare(a, b) == 0;
    if (type == &PyFloat_Type) return same_bits(PyFloat_AS_DOUBLE(a), PyFloat_AS_DOUBLE(b));
    if (type == &PyTuple_Type) return same_items(a, b);
    if (type == &PyComplex_Type) {
        Py_complex left = PyComplex_AsCComplex(a), right = PyComplex_AsCComplex(b);
        return same_bits(left.real, right.real) && same_bits(left.imag, right.imag);
    }
    if (type == &PyFrozenSet_Type) return same_set(a, b);
    if (type == &PyList_Type) return same_copies(Py_NewRef(a), Py_NewRef(b));
    if (type == &PyDict_Type) return same_copies(PyDict_Items(a), PyDict_Items(b));
    if (type == &PySlice_Type || type == &PyRange_Type) return same_slice(a, b);
    return equal(a, b);
}

bool is_plain(PyObject* value) {
    PyTypeObject* type = Py_TYPE(value);
    if (type == &PyTuple_Type) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); i++) {
            if (!is_plain(PyTuple_GET_ITEM(value, i))) return false;
        }
        return true;
    }
    return value == Py_None || value == Py_Ellipsis || type == &PyLong_Type || type == &PyBool_Type ||
           type == &PyUnicode_Type || type == &PyFloat_Type || type == &PyBytes_Type || type == &PyComplex_Type;
}

}  // namespace stator
