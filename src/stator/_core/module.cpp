// The module stator._core.
#include <pthread.h>

#include <cstdlib>
#include <initializer_list>
#include <utility>

#include "compiled.h"
#include "context.h"
#include "entry.h"
#include "functions.h"
#include "hook.h"
#include "probe.h"
#include "program.h"
#include "region.h"
#include "state.h"
#include "tail_call.h"
#include "tensors.h"
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

PyObject* set_revalidation_minimum(PyObject*, PyObject* value) {
    size_t count = PyLong_AsSize_t(value);
    if (count == static_cast<size_t>(-1) && PyErr_Occurred()) return nullptr;
    return PyLong_FromSize_t(std::exchange(state.revalidation_minimum, count));
}

PyMethodDef functions[] = {
    {"set_miss_handler", set_miss_handler, METH_O,
     "Set handler(region, func, code, args) -> Entry | None"},
    {"set_other_tracer", set_other_tracer, METH_O,
     "set_other_tracer(ask): while another evaluation function is installed and ask() is not None, compiled callables "
     "call what they wrap; returns what was set before"},
    {"set_code_policy", set_code_policy, METH_VARARGS,
     "set_code_policy(code, policy): what is done with frames of the code, a CodePolicy"},
    {"get_code_policy", get_code_policy, METH_O,
     "The policy of a code object"},
    {"current_region", current_region, METH_NOARGS,
     "The region this thread is in, or None"},
    {"calls_begun", [](PyObject*, PyObject*) { return PyLong_FromUnsignedLongLong(state.calls_begun); }, METH_NOARGS,
     "How many calls of compiled callables have begun"},
    {"hook_installed", get_hook_installed, METH_NOARGS,
     "Is the frame hook installed now?"},
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
    {"set_strict", set_strict, METH_O,
     "Re-check every decision with the reference program; returns what was set before"},
    {nullptr, nullptr, 0, nullptr},
};

bool add_functions(PyObject* module) {
    for (PyMethodDef* table :
         {caller_functions, class_functions, contents_functions, dict_functions, finalizer_functions, keeping_functions,
          probe_functions, raising_functions, recursion_functions, region_functions, set_functions, tail_call_functions,
          tensor_functions, traceback_functions, tracing_functions}) {
        if (PyModule_AddFunctions(module, table) < 0) return false;
    }
    return true;
}

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
    const std::pair<PyObject**, const char*> names[] = {
        {&state.held_name, "_stator_call"},
        {&state.failure_name, "failure"},
        {&state.call_name, "__call__"},
        {&state.dict_name, "__dict__"},
        {&state.matches_name, "matches"},
        {&state.mark_name, "_dynamo_dynamic_indices"},
        {&state.reference_name, "reference_outcome"},
    };
    for (auto [place, text] : names) {
        if (!(*place = PyUnicode_InternFromString(text))) return false;
    }
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
    return state.deque_type != nullptr;
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
                add_operations(module) && add_enums(module) && add_functions(module);
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
