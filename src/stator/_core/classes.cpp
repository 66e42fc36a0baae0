#include "classes.h"

namespace stator {

PyObject* set_metaclass(PyObject*, PyObject* args) {
    PyTypeObject *cls, *metaclass;
    if (!PyArg_ParseTuple(args, "O!O!:set_metaclass", &PyType_Type, &cls, &PyType_Type, &metaclass)) return nullptr;
    if (!Py_IS_TYPE(cls, &PyType_Type) || !(cls->tp_flags & Py_TPFLAGS_HEAPTYPE) ||
        (cls->tp_flags & Py_TPFLAGS_IMMUTABLETYPE)) {
        PyErr_SetString(PyExc_TypeError, "set_metaclass() is for classes made at run time whose metaclass is type");
        return nullptr;
    }
    if (metaclass->tp_base != &PyType_Type || !(metaclass->tp_flags & Py_TPFLAGS_HEAPTYPE) ||
        metaclass->tp_basicsize != PyType_Type.tp_basicsize || metaclass->tp_itemsize != PyType_Type.tp_itemsize) {
        PyErr_SetString(PyExc_TypeError, "set_metaclass() needs a subclass of type that adds no variables");
        return nullptr;
    }
    Py_INCREF(metaclass);  // `type` is immortal: the class has held no reference to it
    Py_SET_TYPE(cls, metaclass);
    PyType_Modified(cls);
    Py_RETURN_NONE;
}

}  // namespace stator
