// What the module owns.  There is one: the frame hook of an interpreter has no argument of its own, so the core
// serves the main interpreter only.
#pragma once
#include "ref.h"

namespace stator {

// Who may have everything run as ordinary Python.
enum Forcing : unsigned { kByStator = 1, kByTorch = 2 };

// torch's functions about the overrides of a thread (set_overrides()).
struct Overrides {
    int64_t (*count_modes)() = nullptr;
    int (*get)() = nullptr;
    void (*set)(int) = nullptr;
};

struct State {
    PyInterpreterState* interpreter = nullptr;  // the main one
    PyObject* module = nullptr;  // borrowed: the module owns the state's objects through its traverse
    PyTypeObject* region_type = nullptr;
    PyTypeObject* entry_type = nullptr;
    PyTypeObject* program_type = nullptr;
    PyTypeObject* compiled_type = nullptr;
    PyTypeObject* probe_type = nullptr;
    PyTypeObject* tail_call_type = nullptr;
    PyObject* unbound = nullptr;       // stands for an empty argument slot
    PyObject* miss_handler = nullptr;  // set_miss_handler()
    PyObject* deque_type = nullptr;
    vectorcallfunc function_vectorcall = nullptr;  // that of every Python function nobody tampered with
    PyObject* symbolic_namespace = nullptr;  // set_symbolic_flag()
    PyObject* symbolic_name = nullptr;
    uint64_t symbolic_version = 0;           // of that namespace, if a dict, when it was last found not to say so
    PyObject* dict_name = nullptr;     // "__dict__"
    PyObject* held_name = nullptr;     // "_stator_call"
    PyObject* failure_name = nullptr;  // "failure"
    PyObject* call_name = nullptr;     // "__call__"
    PyObject* matches_name = nullptr;  // "matches"
    PyObject* mark_name = nullptr;     // "_dynamo_dynamic_indices"
    PyObject* reference_name = nullptr;     // "reference_outcome"
    Py_ssize_t extra_index = -1;       // of the CodeCache in a code object's co_extra
    int hooked_threads = 0;            // threads that are inside a region and not inside a target
    _PyFrameEvalFunction next_eval = nullptr;  // what the hook was installed over; null: the interpreter
    bool hook_is_in_chain = false;             // it is installed, perhaps beneath another evaluation function
    PyObject* other_tracer = nullptr;          // set_other_tracer()
    size_t revalidation_minimum = 32;          // programs of fewer operations are always walked
    unsigned forced_eager = 0;                 // who has compiled callables call what they wrap: bits of Forcing
    PyObject* stance_namespace = nullptr;      // watch_stance(): a module's globals, in which torch keeps its stance
    PyObject* stance_reader = nullptr;         // says whether that stance is to run everything eagerly
    uint64_t stance_version = 0;               // the namespace's when the reader was asked
    unsigned long long calls_begun = 0;        // of compiled callables, by whoever calls one
    Overrides overrides;                       // set_overrides()
    bool strict = false;                       // re-check every decision with the reference program
};

extern State state;

// Notes what one of them wants; returns what it wanted before.
inline bool force_eager(Forcing who, bool force) {
    bool before = state.forced_eager & who;
    state.forced_eager = force ? state.forced_eager | who : state.forced_eager & ~who;
    return before;
}

// Does a call of the Python function run its code?  C code can have it do something else (PyFunction_SetVectorcall).
inline bool runs_its_code(PyObject* function) {
    return reinterpret_cast<PyFunctionObject*>(function)->vectorcall == state.function_vectorcall;
}

}  // namespace stator
