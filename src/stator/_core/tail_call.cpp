#include "tail_call.h"

#include "functions.h"
#include "state.h"

namespace stator {

namespace {

TailCall* as_tail_call(PyObject* self) { return reinterpret_cast<TailCall*>(self); }

void release_arguments(TailCall* self) {
    Py_ssize_t count = Py_SIZE(self);
    Py_SET_SIZE(self, 1);
    for (Py_ssize_t i = 1; i < count; i++) Py_CLEAR(self->items[i]);
}

void tail_call_dealloc(PyObject* object) {
    PyTypeObject* type = Py_TYPE(object);
    TailCall* self = as_tail_call(object);
    for (Py_ssize_t i = 0; i < Py_SIZE(self); i++) Py_CLEAR(self->items[i]);
    type->tp_free(object);
    Py_DECREF(type);
}

PyType_Slot tail_call_slots[] = {
    {Py_tp_doc, const_cast<char*>("A call left to whoever runs the target.")},
    {Py_tp_dealloc, reinterpret_cast<void*>(tail_call_dealloc)},
    {0, nullptr},
};

}  // namespace

bool take_over_tail_call(Context& context, PyObject* function) {
    TailCall* call = std::exchange(context.tail_call, nullptr);
    if (!call || call->items[0] != function) return false;
    release_arguments(call);
    return true;
}

PyObject* run_tail_calls(Context& context, Region* region, PyObject* result) {
    while (is_tail_call(result)) {
        Ref held = Ref::steal(result);
        TailCall* call = as_tail_call(result);
        RegionScope on(context, region);
        context.tail_call = call;
        result = PyObject_Vectorcall(call->items[0], call->items + 1,
                                     static_cast<size_t>(Py_SIZE(call) - 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
        context.tail_call = nullptr;
    }
    return result;
}

PyType_Spec tail_call_spec = {"stator._core.TailCall", offsetof(TailCall, items), sizeof(PyObject*),
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, tail_call_slots};

namespace {

PyObject* make_tail_call(PyObject*, PyObject* const* items, Py_ssize_t count) {
    if (count < 1) {
        PyErr_SetString(PyExc_TypeError, "tail_call() needs a function");
        return nullptr;
    }
    TailCall* self = PyObject_NewVar(TailCall, state.tail_call_type, count);
    if (!self) return nullptr;
    for (Py_ssize_t i = 0; i < count; i++) self->items[i] = Py_NewRef(items[i]);
    return as_object(self);
}

}  // namespace

PyMethodDef tail_call_functions[] = {
    {"tail_call", as_method(make_tail_call), METH_FASTCALL,
     "tail_call(function, *args): what a target returns to have the call made when its own frame is gone"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace stator
