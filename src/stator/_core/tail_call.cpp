#include "tail_call.h"

#include "functions.h"
#include "recursion.h"
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
    Py_CLEAR(self->region);
    type->tp_free(object);
    Py_DECREF(type);
}

// The frame that begins takes the arguments over.
PyObject* make_call(Context& context, Region* region, TailCall* call) {
    RegionScope on(context, region);
    context.tail_call = call;
    PyObject* result = PyObject_Vectorcall(call->items[0], call->items + 1,
                                           static_cast<size_t>(Py_SIZE(call) - 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
    context.tail_call = nullptr;
    return result;
}

PyObject* tail_call_call(PyObject* object, PyObject*, PyObject*) {
    TailCall* self = as_tail_call(object);
    if (!self->region) {
        PyErr_SetString(PyExc_TypeError, "this call is made by who runs the target");
        return nullptr;
    }
    MoreDepth more(PyThreadState_Get(), kOneCCall);
    Context& context = thread_context();
    auto* region = reinterpret_cast<Region*>(self->region);
    return finish_tail_calls(context, region, make_call(context, region, self));
}

PyType_Slot tail_call_slots[] = {
    {Py_tp_doc, const_cast<char*>("A call left to whoever runs the target.")},
    {Py_tp_dealloc, reinterpret_cast<void*>(tail_call_dealloc)},
    {Py_tp_call, reinterpret_cast<void*>(tail_call_call)},
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
        result = make_call(context, region, as_tail_call(result));
    }
    return result;
}

PyType_Spec tail_call_spec = {"stator._core.TailCall", offsetof(TailCall, items), sizeof(PyObject*),
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, tail_call_slots};

namespace {

TailCall* new_call(Region* region, PyObject* function, PyObject* const* arguments, Py_ssize_t count) {
    TailCall* self = PyObject_NewVar(TailCall, state.tail_call_type, count + 1);
    if (!self) return nullptr;
    self->region = region ? Py_NewRef(as_object(region)) : nullptr;
    self->items[0] = Py_NewRef(function);
    for (Py_ssize_t i = 0; i < count; i++) self->items[i + 1] = Py_NewRef(arguments[i]);
    return self;
}

PyObject* make_tail_call(PyObject*, PyObject* const* items, Py_ssize_t count) {
    if (count < 1) {
        PyErr_SetString(PyExc_TypeError, "tail_call() needs a function");
        return nullptr;
    }
    return as_object(new_call(nullptr, items[0], items + 1, count - 1));
}

}  // namespace

PyObject* make_resumed_call(PyObject* function, PyObject* arguments, Region* region) {
    Py_ssize_t count = PyTuple_GET_SIZE(arguments);
    return as_object(new_call(region, function, &PyTuple_GET_ITEM(arguments, 0), count));
}

PyMethodDef tail_call_functions[] = {
    {"tail_call", as_method(make_tail_call), METH_FASTCALL,
     "tail_call(function, *args): what a target returns to have the call made when its own frame is gone"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace stator
