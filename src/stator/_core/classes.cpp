// What is done to classes of the program's that CPython does not do, or not to classes like these.
#include "dicts.h"
#include "functions.h"
#include "state.h"

namespace stator {

namespace {

// `type` itself is immutable, for which CPython refuses; nothing in the class would differ.
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

// Calls `__call__` as the class shows it.
PyObject* call_what_is_shown(PyObject* self, PyObject* args, PyObject* kwargs) {
    Ref shown = Ref::borrow(_PyType_Lookup(Py_TYPE(self), state.call_name));
    Ref bound = shown ? Ref::steal(PyMethod_New(shown.get(), self)) : Ref();
    return bound ? PyObject_Call(bound.get(), args, kwargs) : nullptr;
}

// Is another tracer at work that finds modules by what they call (set_symbolic_flag)?
bool is_symbolic() {
    if (!state.symbolic_namespace) return false;
    if (PyDict_Check(state.symbolic_namespace)) {
        uint64_t version = dict_version(state.symbolic_namespace);
        if (version && version == state.symbolic_version) return false;
        bool says_so = PyDict_GetItem(state.symbolic_namespace, state.symbolic_name) == Py_True;
        state.symbolic_version = says_so ? 0 : version;
        return says_so;
    }
    Ref own = Ref::steal(PyObject_GetAttr(state.symbolic_namespace, state.dict_name));
    if (!own || !PyDict_Check(own.get())) {
        PyErr_Clear();
        return false;
    }
    return PyDict_GetItem(own.get(), state.symbolic_name) == Py_True;
}

PyObject* call_what_is_held(PyObject* self, PyObject* args, PyObject* kwargs) {
    if (is_symbolic()) return call_what_is_shown(self, args, kwargs);
    Ref held = Ref::steal(PyObject_GenericGetAttr(self, state.held_name));
    return held ? PyObject_Call(held.get(), args, kwargs) : nullptr;
}

// The dict of a class is written to behind type.__setattr__, which would have the slot call what is written.
PyObject* show_as(PyObject*, PyObject* args) {
    PyTypeObject* type;
    PyObject *name, *function;
    if (!PyArg_ParseTuple(args, "O!UO:show_as", &PyType_Type, &type, &name, &function)) return nullptr;
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) {
        PyErr_SetString(PyExc_TypeError, "show_as() is for classes made at run time");
        return nullptr;
    }
    if (PyDict_SetItem(type->tp_dict, name, function) < 0) return nullptr;
    PyType_Modified(type);
    Py_RETURN_NONE;
}

PyObject* call_held(PyObject*, PyObject* args) {
    PyTypeObject* type;
    PyObject* shown;
    if (!PyArg_ParseTuple(args, "O!O:call_held", &PyType_Type, &type, &shown)) return nullptr;
    Ref show = Ref::steal(Py_BuildValue("(OsO)", type, "__call__", shown));
    Ref done = show ? Ref::steal(show_as(nullptr, show.get())) : Ref();
    if (!done) return nullptr;
    type->tp_call = call_what_is_held;
    return done.release();
}

PyObject* set_symbolic_flag(PyObject*, PyObject* args) {
    PyObject *space, *name;
    if (!PyArg_ParseTuple(args, "OU:set_symbolic_flag", &space, &name)) return nullptr;
    Py_XSETREF(state.symbolic_namespace, Py_NewRef(space));
    Py_XSETREF(state.symbolic_name, Py_NewRef(name));
    state.symbolic_version = 0;
    Py_RETURN_NONE;
}

}  // namespace

PyMethodDef class_functions[] = {
    {"set_metaclass", set_metaclass, METH_VARARGS,
     "set_metaclass(cls, metaclass): `cls.__class__ = metaclass` where it is `type`, which CPython refuses to change"},
    {"show_as", show_as, METH_VARARGS,
     "show_as(cls, name, function): who reads the class finds the function; its slot calls what it called before"},
    {"call_held", call_held, METH_VARARGS,
     "call_held(cls, shown): a call of an instance calls its `_stator_call`; `cls.__call__` reads as `shown`"},
    {"set_symbolic_flag", set_symbolic_flag, METH_VARARGS,
     "set_symbolic_flag(namespace, name): while that is True, instances of classes given to call_held() call what is "
     "shown. A dict, or an object with a dict (a threading.local has one of each thread)"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace stator
