// Finding the entry whose guards a call passes, and running it.
#pragma once
#include "context.h"
#include "entry.h"
#include "region.h"

namespace stator {

enum class Outcome {
    kMiss,    // no entry's guards pass
    kHit,     // the outputs are in place
    kNative,  // the entry says: run the frame's own bytecode
    kAlone,   // so it says, and to leave all that the frame calls alone as well
    kError,   // an exception is set
};

// A code object whose frames may be taken over: a plain function's, no debugger on the thread.
inline bool is_traceable(PyThreadState* thread, PyCodeObject* code) {
    constexpr int kFunction = CO_OPTIMIZED | CO_NEWLOCALS;
    constexpr int kSuspendable = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR;
    // a body without any stack (`pass`) has nothing to take over, and leave_frame() needs one place; while the thread is
    // `tracing`, an audit hook or a trace function runs, which is no part of the program
    return (code->co_flags & (kFunction | kSuspendable)) == kFunction && !thread->c_tracefunc && !thread->tracing &&
           code->co_stacksize > 0;
}

inline Py_ssize_t argument_slots(PyCodeObject* code) {
    return code->co_argcount + code->co_kwonlyargcount + ((code->co_flags & CO_VARARGS) != 0) +
           ((code->co_flags & CO_VARKEYWORDS) != 0);
}

// Tries the entries (may be null); on a hit `entry` holds the entry.
Outcome find_entry(Context& context, CodeEntries* code_entries, const Call& call, OutputArray& outputs, Ref& entry);

// Runs the guards of an entry that was made for this very call; that they fail is an error.
Outcome run_new_entry(Context& context, Entry* entry, const Call& call, OutputArray& outputs);

// Calls the entry's target with the program's outputs, hook off. What the target leaves to Python is traced for the
// region: an entry may be in the caches of several.
PyObject* run_target(Context& context, Region* region, Entry* entry, const OutputArray& outputs);

// handler(region, func, code, args): an Entry, None, or null with an exception.
Ref call_miss_handler(Context& context, PyObject* region, PyObject* code, const Call& call);

}  // namespace stator
