// A cache entry: what is done before its guards are checked, the guards, and what to run when they pass.
#pragma once
#include "program.h"

namespace stator {

struct Entry {
    PyObject_HEAD
    Program* program;
    PyObject* target;  // called with the program's outputs; None: the frame runs natively
    PyObject* owner;
    PyObject* prologue;  // called before the guards are checked, once in a dispatch; mostly null
    unsigned long long hits;
    int depth;              // of the calls that the target stands for: with fewer left, the frame runs natively
    char alone;            // with no target: nothing that the frame calls is traced either
    char drops_arguments;  // the program lets go of an argument before the target ends
    unsigned long long released;  // the arguments of which it does, a bit each (finalizers.h)
};

extern PyType_Spec entry_spec;

}  // namespace stator
