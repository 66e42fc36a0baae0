#include "compiled.h"

#include <structmember.h>

#include "binding.h"
#include "dicts.h"
#include "dispatch.h"
#include "state.h"
#include "tail_call.h"
#include "tracebacks.h"

namespace stator {

namespace {

Compiled* as_compiled(PyObject* self) { return reinterpret_cast<Compiled*>(self); }

PyObject* call_through_hook(Compiled* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
    Context& context = thread_context();
    if (stack_is_low(context)) {
        PyErr_SetString(PyExc_RecursionError, "maximum recursion depth exceeded");
        return nullptr;
    }
    RegionScope scope(context, self->region);
    return PyObject_Vectorcall(self->function, args, nargsf, kwnames);
}

// The entries to look a call of the function up in, null if its frame is not one the hook would take over.
CodeEntries* entries_for(PyObject* function, Region* region) {
    if (!runs_its_code(function)) return nullptr;
    auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function));
    if (!is_traceable(PyThreadState_Get(), code)) return nullptr;
    CodeCache* cache = code_cache(code, false);
    return cache && cache->policy == Policy::kTrace ? cache->code_entries(region) : nullptr;
}

// Runs the target of the entry that fits, if there is one and no frame is needed to find it out.
Outcome call_directly(Compiled* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames, PyObject** result) {
    PyObject *function = self->function, *instance = nullptr;
    Ref of_class;
    if (PyMethod_Check(function)) {
        instance = PyMethod_GET_SELF(function);
        function = PyMethod_GET_FUNCTION(function);
    } else if (!PyFunction_Check(function)) {
        // An object: what its class has as `__call__` now, as CPython looks it up in each call.
        instance = function;
        of_class = Ref::borrow(_PyType_Lookup(Py_TYPE(instance), state.call_name));
        function = of_class.get();
    }
    if (!function || !PyFunction_Check(function)) return Outcome::kMiss;
    CodeEntries* code_entries = entries_for(function, self->region);
    BoundArguments bound;
    if (!code_entries || !bound.bind(function, instance, args, nargs, kwnames)) return Outcome::kMiss;
    Context& context = thread_context();
    if (stack_is_low(context)) return Outcome::kMiss;
    OutputArray outputs;
    Ref entry;
    Outcome outcome = find_entry(context, code_entries, bound.call(), outputs, entry);
    if (outcome == Outcome::kHit) {
        *result = run_target(context, self->region, reinterpret_cast<Entry*>(entry.get()), outputs);
        if (is_tail_call(*result)) outputs.clear();
        *result = finish_tail_calls(context, self->region, *result);
        if (!*result) tidy_traceback(nullptr);
    }
    return outcome;
}

// Torch's stance is read when something has changed where torch keeps it.
void read_torchs_stance(uint64_t version) {
    state.stance_version = version;
    Ref forces = Ref::steal(PyObject_CallNoArgs(state.stance_reader));
    if (!forces) PyErr_Clear();
    force_eager(kByTorch, forces.get() == Py_True);
}

// Is everything to run as ordinary Python?
bool is_forced_eager() {
    if (state.stance_namespace) {
        uint64_t version = dict_version(state.stance_namespace);
        if (!version || version != state.stance_version) read_torchs_stance(version);
    }
    return state.forced_eager != 0;
}

PyObject* compiled_vectorcall(PyObject* object, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
    Ref self = Ref::borrow(object);  // keeps the function and the region while they run
    if (is_forced_eager() || another_tracer_is_active()) {
        return PyObject_Vectorcall(as_compiled(object)->function, args, nargsf, kwnames);
    }
    state.calls_begun++;
    PyObject* result = nullptr;
    switch (call_directly(as_compiled(object), args, PyVectorcall_NARGS(nargsf), kwnames, &result)) {
        case Outcome::kHit:
        case Outcome::kError:
            return result;
        default:
            return call_through_hook(as_compiled(object), args, nargsf, kwnames);
    }
}

// What functools.update_wrapper copies, as far as the function has it.
bool copy_names(PyObject* self, PyObject* function) {
    if (PyFunction_Check(function) || PyMethod_Check(function)) {
        Ref own = Ref::steal(PyObject_GetAttrString(function, "__dict__"));
        Ref dict = Ref::steal(PyObject_GenericGetDict(self, nullptr));
        if (!own || !dict || PyDict_Update(dict.get(), own.get()) < 0) return false;
    }
    for (const char* name :
         {"__module__", "__name__", "__qualname__", "__doc__", "__annotations__", "__type_params__"}) {
        Ref value = Ref::steal(PyObject_GetAttrString(function, name));
        if (!value && !PyErr_ExceptionMatches(PyExc_AttributeError)) return false;
        if (!value) PyErr_Clear();
        if (value && PyObject_SetAttrString(self, name, value.get()) < 0) return false;
    }
    return true;
}

PyObject* compiled_new(PyTypeObject* type, PyObject* args, PyObject*) {
    PyObject *function, *region, *named = nullptr;
    if (!PyArg_ParseTuple(args, "OO!|O:Compiled", &function, state.region_type, &region, &named)) return nullptr;
    if (!PyCallable_Check(function)) {
        PyErr_Format(PyExc_TypeError, "%.100s is not callable", Py_TYPE(function)->tp_name);
        return nullptr;
    }
    Ref made = Ref::steal(type->tp_alloc(type, 0));
    if (!made) return nullptr;
    Compiled* self = as_compiled(made.get());
    self->vectorcall = compiled_vectorcall;
    self->function = Py_NewRef(function);
    self->region = reinterpret_cast<Region*>(Py_NewRef(region));
    return copy_names(made.get(), named ? named : function) ? made.release() : nullptr;
}

int compiled_init(PyObject*, PyObject*, PyObject*) { return 0; }

int compiled_traverse(PyObject* object, visitproc visit, void* arg) {
    Compiled* self = as_compiled(object);
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->function);
    Py_VISIT(self->region);
    Py_VISIT(self->dict);
    return 0;
}

// The function and the region stay, so that a call from a finaliser finds them: the dict is what closes cycles,
// and the function's own dict, closure and globals.
int compiled_clear(PyObject* object) {
    Py_CLEAR(as_compiled(object)->dict);
    return 0;
}

void compiled_dealloc(PyObject* object) {
    Compiled* self = as_compiled(object);
    PyTypeObject* type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    if (self->weakrefs) PyObject_ClearWeakRefs(object);
    Py_CLEAR(self->dict);
    Py_CLEAR(self->function);
    Py_CLEAR(self->region);
    type->tp_free(object);
    Py_DECREF(type);
}

PyObject* compiled_get(PyObject* self, PyObject* instance, PyObject*) {
    if (!instance || instance == Py_None) return Py_NewRef(self);
    return PyMethod_New(self, instance);
}

PyObject* of_function(PyObject* object, void* name) {
    return PyObject_GetAttrString(as_compiled(object)->function, static_cast<const char*>(name));
}

// Who asks for a function is told that this is one, as which a compiler's result goes; what type() gives is Compiled.
PyObject* class_of(PyObject* object, void*) {
    PyObject* wrapped = as_compiled(object)->function;
    bool is_function = PyFunction_Check(wrapped) || PyMethod_Check(wrapped);
    return Py_NewRef(reinterpret_cast<PyObject*>(is_function ? &PyFunction_Type : Py_TYPE(object)));
}

PyObject* compiled_repr(PyObject* object) { return PyUnicode_FromFormat("<compiled %R>", as_compiled(object)->function); }

// How it is copied and pickled is said in Python: stator/compiler/copies.py.
PyObject* ask_copies(const char* name, PyObject* self, PyObject* argument) {
    Ref module = Ref::steal(PyImport_ImportModule("stator.compiler.copies"));
    Ref function = Ref::steal(module ? PyObject_GetAttrString(module.get(), name) : nullptr);
    return function ? PyObject_CallFunctionObjArgs(function.get(), self, argument, nullptr) : nullptr;
}

PyObject* compiled_copy(PyObject* self, PyObject*) { return ask_copies("copied", self, nullptr); }

PyObject* compiled_deepcopy(PyObject* self, PyObject* memo) { return ask_copies("deep_copied", self, memo); }

PyObject* compiled_reduce(PyObject* self, PyObject* protocol) { return ask_copies("reduced", self, protocol); }

PyMethodDef compiled_methods[] = {
    {"__copy__", compiled_copy, METH_NOARGS, "compiled as this is, with caches of its own"},
    {"__deepcopy__", compiled_deepcopy, METH_O, "a copy of the function, compiled as this is"},
    {"__reduce_ex__", compiled_reduce, METH_O, "by its name if it is found there, else what makes it again"},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef compiled_members[] = {
    {"__wrapped__", T_OBJECT, offsetof(Compiled, function), READONLY, "the function"},
    {"region", T_OBJECT, offsetof(Compiled, region), READONLY, "its caches"},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Compiled, vectorcall), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Compiled, weakrefs), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(Compiled, dict), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyGetSetDef compiled_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {"__code__", of_function, nullptr, "the function's", const_cast<char*>("__code__")},
    {"__globals__", of_function, nullptr, "the function's", const_cast<char*>("__globals__")},
    {"__defaults__", of_function, nullptr, "the function's", const_cast<char*>("__defaults__")},
    {"__kwdefaults__", of_function, nullptr, "the function's", const_cast<char*>("__kwdefaults__")},
    {"__class__", class_of, nullptr, "that of the functions, where it stands for one", nullptr},
    {"__closure__", of_function, nullptr, "the function's", const_cast<char*>("__closure__")},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyType_Slot compiled_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(compiled_new)},
    {Py_tp_init, reinterpret_cast<void*>(compiled_init)},
    {Py_tp_dealloc, reinterpret_cast<void*>(compiled_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(compiled_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(compiled_clear)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_repr, reinterpret_cast<void*>(compiled_repr)},
    {Py_tp_descr_get, reinterpret_cast<void*>(compiled_get)},
    {Py_tp_members, compiled_members},
    {Py_tp_methods, compiled_methods},
    {Py_tp_getset, compiled_getset},
    {0, nullptr},
};

}  // namespace

PyType_Spec compiled_spec = {"stator._core.Compiled", sizeof(Compiled), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE |
                                 Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
                             compiled_slots};

}  // namespace stator
