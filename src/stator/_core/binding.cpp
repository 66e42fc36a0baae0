#include "binding.h"

#include "dispatch.h"

namespace stator {

namespace {

PyObject* parameter_name(PyCodeObject* code, Py_ssize_t index) {
    return PyTuple_GET_ITEM(code->co_localsplusnames, index);
}

// The slot a keyword argument goes to, -1 if there is none.
Py_ssize_t slot_of(PyCodeObject* code, PyObject* name) {
    Py_ssize_t count = code->co_argcount + code->co_kwonlyargcount;
    for (Py_ssize_t i = code->co_posonlyargcount; i < count; i++) {
        if (parameter_name(code, i) == name) return i;
    }
    for (Py_ssize_t i = code->co_posonlyargcount; i < count; i++) {
        if (PyUnicode_Compare(parameter_name(code, i), name) == 0) return i;
    }
    return -1;
}

}  // namespace

bool BoundArguments::bind(PyObject* function, PyObject* instance, PyObject* const* args, Py_ssize_t nargs,
                          PyObject* kwnames) {
    auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function));
    call_.function = function;
    call_.count = argument_slots(code);
    call_.slots = args;
    bool keywords = kwnames && PyTuple_GET_SIZE(kwnames) > 0;
    if (!instance && !keywords && nargs == code->co_argcount && call_.count == nargs) return true;
    return bind_slowly(code, instance, args, nargs, keywords ? kwnames : nullptr);
}

bool BoundArguments::bind_slowly(PyCodeObject* code, PyObject* instance, PyObject* const* args, Py_ssize_t nargs,
                                 PyObject* kwnames) {
    auto count = static_cast<size_t>(call_.count);
    if (count > kInline) {
        more_.resize(count);
        slots_ = more_.data();
    }
    for (size_t i = 0; i < count; i++) slots_[i] = nullptr;
    call_.slots = slots_;
    return bind_positional(code, instance, args, nargs) && bind_keywords(code, args + nargs, kwnames) &&
           fill_defaults(code);
}

bool BoundArguments::bind_positional(PyCodeObject* code, PyObject* instance, PyObject* const* args,
                                     Py_ssize_t nargs) {
    Py_ssize_t shift = instance ? 1 : 0;
    Py_ssize_t room = code->co_argcount - shift;  // for `args`
    if (room < 0) return false;                   // the instance itself goes to *args: rare
    if (instance) slots_[0] = instance;
    for (Py_ssize_t i = 0; i < nargs && i < room; i++) slots_[i + shift] = args[i];
    if (!(code->co_flags & CO_VARARGS)) return nargs <= room;
    Py_ssize_t more = nargs > room ? nargs - room : 0;
    extra_positional_ = Ref::steal(PyTuple_New(more));
    if (!extra_positional_) PyErr_Clear();
    for (Py_ssize_t i = 0; extra_positional_ && i < more; i++) {
        PyTuple_SET_ITEM(extra_positional_.get(), i, Py_NewRef(args[room + i]));
    }
    slots_[code->co_argcount + code->co_kwonlyargcount] = extra_positional_.get();
    return static_cast<bool>(extra_positional_);
}

bool BoundArguments::bind_keywords(PyCodeObject* code, PyObject* const* values, PyObject* kwnames) {
    if (code->co_flags & CO_VARKEYWORDS) {
        extra_keywords_ = Ref::steal(PyDict_New());
        if (!extra_keywords_) PyErr_Clear();
        if (!extra_keywords_) return false;
        slots_[call_.count - 1] = extra_keywords_.get();
    }
    for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); i++) {
        PyObject* name = PyTuple_GET_ITEM(kwnames, i);
        Py_ssize_t slot = slot_of(code, name);
        if (slot >= 0) {
            if (slots_[slot]) return false;  // given twice
            slots_[slot] = values[i];
        } else if (!extra_keywords_ || PyDict_SetItem(extra_keywords_.get(), name, values[i]) < 0) {
            PyErr_Clear();
            return false;
        }
    }
    return true;
}

bool BoundArguments::fill_defaults(PyCodeObject* code) {
    auto* function = reinterpret_cast<PyFunctionObject*>(call_.function);
    Py_ssize_t have = function->func_defaults ? PyTuple_GET_SIZE(function->func_defaults) : 0;
    Py_ssize_t first = code->co_argcount - have;
    for (Py_ssize_t i = 0; i < code->co_argcount; i++) {
        if (slots_[i]) continue;
        if (i < first) return false;
        slots_[i] = PyTuple_GET_ITEM(function->func_defaults, i - first);
    }
    for (Py_ssize_t i = code->co_argcount; i < code->co_argcount + code->co_kwonlyargcount; i++) {
        if (slots_[i]) continue;
        PyObject* defaults = function->func_kwdefaults;
        slots_[i] = defaults ? PyDict_GetItemWithError(defaults, parameter_name(code, i)) : nullptr;
        if (!slots_[i]) PyErr_Clear();
        if (!slots_[i]) return false;
    }
    return true;
}

}  // namespace stator
