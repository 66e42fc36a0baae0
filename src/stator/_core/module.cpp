// The module stator._core.
#include <pthread.h>

#include <cstdlib>
#include <initializer_list>
#include <utility>

#include "callers.h"
#include "classes.h"
#include "compiled.h"
#include "contents.h"
#include "context.h"
#include "dict_writing.h"
#include "entry.h"
#include "hook.h"
#include "keeping.h"
#include "probe.h"
#include "program.h"
#include "raising.h"
#include "recursion.h"
#include "region.h"
#include "sets.h"
#include "state.h"
#include "tail_call.h"
#include "tensors.h"
#include "tracebacks.h"
#include "tracing_suspended.h"
#include "versions.h"

namespace stator {

State state;

namespace {

PyObject* set_miss_handler(PyObject*, PyObject* handler) {
    Py_XSETREF(state.miss_handler, handler == Py_None ? nullptr : Py_NewRef(handler));
    Py_RETURN_NONE;
}

PyObject* set_other_tracer(PyObject*, PyObject* ask) {
    PyObject* before = std::exchange(state.other_tracer, ask == Py_None ? nullptr : Py_NewRef(ask));
    return before ? before : Py_NewRef(Py_None);
}

PyObject* set_symbolic_flag(PyObject*, PyObject* args) {
    PyObject *space, *name;
    if (!PyArg_ParseTuple(args, "OU:set_symbolic_flag", &space, &name)) return nullptr;
    Py_XSETREF(state.symbolic_namespace, Py_NewRef(space));
    Py_XSETREF(state.symbolic_name, Py_NewRef(name));
    state.symbolic_version = 0;
    Py_RETURN_NONE;
}

PyObject* set_code_policy(PyObject*, PyObject* args) {
    PyObject* code;
    int policy;
    if (!PyArg_ParseTuple(args, "O!i:set_code_policy", &PyCode_Type, &code, &policy)) return nullptr;
    if (policy < 0 || policy > 2) {
        PyErr_SetString(PyExc_ValueError, "a code policy is a member of CodePolicy");
        return nullptr;
    }
    CodeCache* cache = code_cache(reinterpret_cast<PyCodeObject*>(code), true);
    if (!cache) return nullptr;
    cache->policy = static_cast<Policy>(policy);
    Py_RETURN_NONE;
}

PyObject* get_code_policy(PyObject*, PyObject* code) {
    if (!PyCode_Check(code)) {
        PyErr_SetString(PyExc_TypeError, "expected a code object");
        return nullptr;
    }
    CodeCache* cache = code_cache(reinterpret_cast<PyCodeObject*>(code), false);
    if (!cache && PyErr_Occurred()) return nullptr;
    return PyLong_FromLong(cache ? static_cast<long>(cache->policy) : 0);
}

PyObject* current_region(PyObject*, PyObject*) {
    Region* region = thread_context().region;
    return Py_NewRef(region ? as_object(region) : Py_None);
}

PyObject* get_hook_installed(PyObject*, PyObject*) { return PyBool_FromLong(hook_installed()); }

PyObject* set_strict(PyObject*, PyObject* value) {
    int strict = PyObject_IsTrue(value);
    if (strict < 0) return nullptr;
    return PyBool_FromLong(std::exchange(state.strict, strict != 0));
}

PyObject* set_force_eager(PyObject*, PyObject* value) {
    int force = PyObject_IsTrue(value);
    if (force < 0) return nullptr;
    return PyBool_FromLong(force_eager(kByStator, force != 0));
}

PyObject* watch_stance(PyObject*, PyObject* args) {
    PyObject *dict, *reader;
    if (!PyArg_ParseTuple(args, "O!O:watch_stance", &PyDict_Type, &dict, &reader)) return nullptr;
    Py_XSETREF(state.stance_namespace, Py_NewRef(dict));
    Py_XSETREF(state.stance_reader, Py_NewRef(reader));
    state.stance_version = 0;
    Py_RETURN_NONE;
}

PyObject* finished_frame(PyObject*, PyObject* args) {
    PyObject *code, *globals, *back, *variables;
    int offset;
    if (!PyArg_ParseTuple(args, "O!O!iOO:finished_frame", &PyCode_Type, &code, &PyDict_Type, &globals, &offset, &back,
                          &variables)) {
        return nullptr;
    }
    auto* made = reinterpret_cast<PyCodeObject*>(code);
    if (variables != Py_None && (made->co_flags & CO_OPTIMIZED) && !PyDict_Check(variables)) {
        PyErr_SetString(PyExc_TypeError, "the variables of a function are a dict or None");
        return nullptr;
    }
    if (back != Py_None && !PyFrame_Check(back)) {
        PyErr_SetString(PyExc_TypeError, "the caller of a frame is a frame or None");
        return nullptr;
    }
    return make_finished_frame(made, globals, offset, back == Py_None ? nullptr : back,
                               variables == Py_None ? nullptr : variables);
}

PyObject* set_revalidation_minimum(PyObject*, PyObject* value) {
    size_t count = PyLong_AsSize_t(value);
    if (count == static_cast<size_t>(-1) && PyErr_Occurred()) return nullptr;
    return PyLong_FromSize_t(std::exchange(state.revalidation_minimum, count));
}

PyMethodDef functions[] = {
    {"set_miss_handler", set_miss_handler, METH_O, "Set handler(region, func, code, args) -> Entry | None"},
    {"set_symbolic_flag", set_symbolic_flag, METH_VARARGS,
     "set_symbolic_flag(namespace, name): while that is True, instances of classes given to call_held() call what is "
     "shown. A dict, or an object with a dict (a threading.local has one of each thread)"},
    {"show_as", show_as, METH_VARARGS,
     "show_as(cls, name, function): who reads the class finds the function; its slot calls what it called before"},
    {"set_metaclass", set_metaclass, METH_VARARGS,
     "set_metaclass(cls, metaclass): `cls.__class__ = metaclass` where it is `type`, which CPython refuses to change"},
    {"call_held", call_held, METH_VARARGS,
     "call_held(cls, shown): a call of an instance calls its `_stator_call`; `cls.__call__` reads as `shown`"},
    {"set_other_tracer", set_other_tracer, METH_O,
     "set_other_tracer(ask): while another evaluation function is installed and ask() is not None, compiled callables "
     "call what they wrap; returns what was set before"},
    {"set_code_policy", set_code_policy, METH_VARARGS,
     "set_code_policy(code, policy): what is done with frames of the code, a CodePolicy"},
    {"get_code_policy", get_code_policy, METH_O, "The policy of a code object"},
    {"current_region", current_region, METH_NOARGS, "The region this thread is in, or None"},
    {"hook_installed", get_hook_installed, METH_NOARGS, "Is the frame hook installed now?"},
    {"calls_left", calls_left, METH_NOARGS,
     "How many calls the program may nest below the frame that is traced"},
    {"call_within", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_within)),
     METH_FASTCALL | METH_KEYWORDS,
     "call_within(depth, function, *args, **kwargs): the call, with a RecursionError beyond so many nested ones"},
    {"call_with_tracing", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_with_tracing)),
     METH_FASTCALL | METH_KEYWORDS,
     "call_with_tracing(function, *args, **kwargs): the call, shown to profilers and debuggers even while tracing"},
    {"called_from", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(called_from)),
     METH_FASTCALL | METH_KEYWORDS,
     "called_from(frames, values, function, *args, **kwargs): the call, as if made by frames (function, offset, slots)"},
    {"apply", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(apply)), METH_FASTCALL,
     "apply(function, args[, kwargs]): function(*args, **kwargs), which gets this very tuple if it is a C function"},
    {"raise_unchanged", raise_unchanged, METH_O,
     "raise_unchanged(exception): raises it as it is; in a tuple: in place of the one being raised, in the handler"},
    {"exchange", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(exchange)), METH_FASTCALL,
     "exchange(iterator, other): each of two iterators of one builtin type goes on where the other would have"},
    {"has_buffer", has_buffer, METH_O, "has_buffer(type): do its instances let others read their bytes?"},
    {"is_generic_access", is_generic_access, METH_O,
     "is_generic_access(slot): is it the ordinary __getattribute__, __setattr__ or __delattr__, under any type's name?"},
    {"set_layout", set_layout, METH_O,
     "set_layout(s): a byte for each place of the set's table, then the elements in order"},
    {"set_table", set_table, METH_O, "set_table(s): (places, finger, hashes), all of the set's table but its elements"},
    {"set_finger", set_finger, METH_O, "set_finger(s): the place where the set's next pop() begins to look"},
    {"fill_table", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(fill_table)), METH_FASTCALL,
     "fill_table(s, table, elements): give an empty set a table as set_table() describes it; returns the set"},
    {"dict_hashes", dict_hashes, METH_O, "dict_hashes(d): the hashes that the dict has stored with its keys, in order"},
    {"write_dict", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(write_dict)), METH_FASTCALL,
     "write_dict(d, deleted, keys, items, hashes): delete and assign, no key being hashed or compared; returns the dict"},
    {"finished_frame", finished_frame, METH_VARARGS,
     "finished_frame(code, globals, offset, back, variables): a frame that has ended at the instruction at this byte offset"},
    {"runs_its_code", [](PyObject*, PyObject* function) {
         return PyBool_FromLong(PyFunction_Check(function) && runs_its_code(function)); }, METH_O,
     "Does a call of the Python function run its code, or has C code replaced what it does?"},
    {"set_revalidation_minimum", set_revalidation_minimum, METH_O,
     "Programs of fewer operations are walked at each call; returns what was set before"},
    {"set_force_eager", set_force_eager, METH_O,
     "Compiled callables run what they wrap as it is; returns what was set before"},
    {"watch_stance", watch_stance, METH_VARARGS,
     "watch_stance(namespace, reader): compiled callables run what they wrap as it is while reader() is True; it is asked "
     "again when the namespace has changed"},
    {"set_strict", set_strict, METH_O, "Re-check every decision with the Python twin; returns what was set before"},
    {"configure_tensors", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(configure_tensors)),
     METH_VARARGS | METH_KEYWORDS, "Tell where a TensorImpl keeps its metadata; see stator.pytorch.tensors.reader"},
    {"set_thread_local_symbol", set_thread_local_symbol, METH_VARARGS,
     "Name the thread-local variable that probes read; is there one of that name?"},
    {"tail_call", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(make_tail_call)), METH_FASTCALL,
     "tail_call(function, *args): what a target returns to have the call made when its own frame is gone"},
    {"read_tensor", read_tensor, METH_O, "(keys, requires_grad, sizes, strides) as the core reads them, or None"},
    {"plan_keeping", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(plan_keeping)), METH_FASTCALL,
     "plan_keeping(tensors, itemsizes): what keep_contents() needs to know of tensors in the CPU's memory, or None"},
    {"keep_contents", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(keep_contents)), METH_FASTCALL,
     "keep_contents(plan, tensors): what lies in their memory, or None if they are not as planned"},
    {"put_contents_back", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(put_contents_back)), METH_FASTCALL,
     "put_contents_back(plan, tensors, kept): False, and nothing is written, if they are not as planned any more"},
    {nullptr, nullptr, 0, nullptr},
};

bool add_type(PyObject* module, PyType_Spec* spec, PyTypeObject** place) {
    PyObject* type = PyType_FromModuleAndSpec(module, spec, nullptr);
    if (!type) return false;
    *place = reinterpret_cast<PyTypeObject*>(type);
    return PyModule_AddType(module, *place) == 0;
}

bool add_limit(PyObject* module) {
    return PyModule_AddIntConstant(module, "C_RECURSION_LIMIT", kCRecursionLimit) == 0;
}

bool add_unbound(PyObject* module) {
    state.unbound = PyObject_CallNoArgs(as_object(&PyBaseObject_Type));
    return state.unbound && PyModule_AddObjectRef(module, "UNBOUND", state.unbound) == 0;
}

// An enumeration of the core's, as an enum.IntEnum of that name.
bool add_enum(PyObject* module, const char* name, std::initializer_list<std::pair<const char*, int>> members) {
    Ref numbers = Ref::steal(PyDict_New());
    for (const auto& [member, number] : members) {
        Ref value = Ref::steal(PyLong_FromLong(number));
        if (!numbers || !value || PyDict_SetItemString(numbers.get(), member, value.get()) < 0) return false;
    }
    Ref library = Ref::steal(PyImport_ImportModule("enum"));
    Ref made = library ? Ref::steal(PyObject_CallMethod(library.get(), "IntEnum", "sO", name, numbers.get())) : Ref();
    Ref module_name = Ref::steal(PyModule_GetNameObject(module));
    if (!made || !module_name || PyObject_SetAttrString(made.get(), "__module__", module_name.get()) < 0) return false;
    return PyModule_AddObjectRef(module, name, made.get()) == 0;
}

bool add_enums(PyObject* module) {
    auto number = [](auto member) { return static_cast<int>(member); };
    return add_enum(module, "CodePolicy",
                    {{"TRACE", number(Policy::kTrace)},
                     {"SKIP", number(Policy::kSkip)},
                     {"RUN_RECURSIVELY", number(Policy::kRunRecursively)}}) &&
           add_enum(module, "ProbeKind",
                    {{"BYTE_AT_RESULT", number(ProbeKind::kByteAtResult)},
                     {"RESULT_OF_1", number(ProbeKind::kResultOf1)},
                     {"RESULT_OF_4", number(ProbeKind::kResultOf4)},
                     {"RESULT_OF_8", number(ProbeKind::kResultOf8)},
                     {"THREAD_LOCAL", number(ProbeKind::kThreadLocal)}});
}

// The rows of ops.h as {name: (is it a check?, reads, operand, proof)}.
bool add_operations(PyObject* module) {
    Ref rows = Ref::steal(PyDict_New());
    for (int i = 0; rows && i < static_cast<int>(OpCode::COUNT_); i++) {
        const Operation& row = kOperations[i];
        PyObject* is_check = static_cast<OpCode>(i) < kFirstCheck ? Py_False : Py_True;
        Ref made = Ref::steal(Py_BuildValue("Osss", is_check, row.reads_name, row.operand_name, row.proof_name));
        if (!made || PyDict_SetItemString(rows.get(), row.name, made.get()) < 0) return false;
    }
    return rows && PyModule_AddObjectRef(module, "OPERATIONS", rows.get()) == 0;
}

bool fill_state(PyObject* module) {
    state.module = module;
    state.interpreter = PyInterpreterState_Get();
    state.held_name = PyUnicode_InternFromString("_stator_call");
    state.failure_name = PyUnicode_InternFromString("failure");
    state.call_name = PyUnicode_InternFromString("__call__");
    state.dict_name = PyUnicode_InternFromString("__dict__");
    state.matches_name = PyUnicode_InternFromString("matches");
    state.twin_name = PyUnicode_InternFromString("twin_outcome");
    Ref collections = Ref::steal(PyImport_ImportModule("collections"));
    if (!collections) return false;
    state.deque_type = PyObject_GetAttrString(collections.get(), "deque");
    Ref function = Ref::steal(PyObject_GetAttrString(collections.get(), "namedtuple"));
    if (!function || !PyFunction_Check(function.get())) return false;
    state.function_vectorcall = reinterpret_cast<PyFunctionObject*>(function.get())->vectorcall;
    state.extra_index = request_code_extra_index(free_code_cache);
    if (state.extra_index < 0) {
        PyErr_SetString(PyExc_ImportError, "CPython has no co_extra index left");
        return false;
    }
    pthread_atfork(nullptr, nullptr, forget_other_threads);
    const char* strict = std::getenv("STATOR_STRICT");
    state.strict = strict && *strict && !(strict[0] == '0' && !strict[1]);
    return state.held_name && state.failure_name && state.call_name && state.dict_name && state.matches_name && state.twin_name &&
           state.deque_type;
}

int exec_module(PyObject* module) {
    if (state.module) {
        PyErr_SetString(PyExc_ImportError, "stator._core can be loaded once per process, in the main interpreter");
        return -1;
    }
    bool done = fill_state(module) && add_type(module, &region_spec, &state.region_type) &&
                add_type(module, &program_spec, &state.program_type) &&
                add_type(module, &entry_spec, &state.entry_type) &&
                add_type(module, &compiled_spec, &state.compiled_type) &&
                add_type(module, &probe_spec, &state.probe_type) &&
                add_type(module, &tail_call_spec, &state.tail_call_type) && add_unbound(module) && add_limit(module) &&
                add_operations(module) && add_enums(module);
    return done ? 0 : -1;
}

PyModuleDef_Slot slots[] = {
    {Py_mod_exec, reinterpret_cast<void*>(exec_module)},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "stator._core", "Stator's core: frame hook, guard programs, caches.", 0, functions, slots,
    nullptr,               nullptr,        nullptr,
};

}  // namespace

}  // namespace stator

PyMODINIT_FUNC PyInit__core() { return PyModuleDef_Init(&stator::definition); }
