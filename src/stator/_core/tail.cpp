#include "tail.h"

#include "state.h"

namespace stator {

namespace {

Tail* as_tail(PyObject* self) { return reinterpret_cast<Tail*>(self); }

void release_arguments(Tail* self) {
    Py_ssize_t count = Py_SIZE(self);
    Py_SET_SIZE(self, 1);
    for (Py_ssize_t i = 1; i < count; i++) Py_CLEAR(self->items[i]);
}

void tail_dealloc(PyObject* object) {
    PyTypeObject* type = Py_TYPE(object);
    Tail* self = as_tail(object);
    for (Py_ssize_t i = 0; i < Py_SIZE(self); i++) Py_CLEAR(self->items[i]);
    type->tp_free(object);
    Py_DECREF(type);
}

PyType_Slot tail_slots[] = {
    {Py_tp_doc, const_cast<char*>("A call left to whoever runs the target.")},
    {Py_tp_dealloc, reinterpret_cast<void*>(tail_dealloc)},
    {0, nullptr},
};

}  // namespace

PyObject* make_tail(PyObject*, PyObject* const* items, Py_ssize_t count) {
    if (count < 1) {
        PyErr_SetString(PyExc_TypeError, "tail() needs a function");
        return nullptr;
    }
    Tail* self = PyObject_NewVar(Tail, state.tail_type, count);
    if (!self) return nullptr;
    for (Py_ssize_t i = 0; i < count; i++) self->items[i] = Py_NewRef(items[i]);
    return as_object(self);
}

bool take_over_tail(Context& context, PyObject* function) {
    Tail* tail = std::exchange(context.tail, nullptr);
    if (!tail || tail->items[0] != function) return false;
    release_arguments(tail);
    return true;
}

PyObject* make_tail_calls(Context& context, Region* region, PyObject* result) {
    while (is_tail(result)) {
        Ref held = Ref::steal(result);
        Tail* tail = as_tail(result);
        RegionScope on(context, region);
        context.tail = tail;
        result = PyObject_Vectorcall(tail->items[0], tail->items + 1,
                                     static_cast<size_t>(Py_SIZE(tail) - 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
        context.tail = nullptr;
    }
    return result;
}

PyType_Spec tail_spec = {"stator._core.Tail", offsetof(Tail, items), sizeof(PyObject*),
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, tail_slots};

}  // namespace stator
