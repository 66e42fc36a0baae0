// Probes: has a state that C functions report changed?
#pragma once
#include <vector>

#include "ref.h"

namespace stator {

enum class ProbeKind : int {
    kByteAtResult = 0,  // the byte at the address that a function returns, plus the argument
    kResultOf1 = 1,     // a function's result of so many bytes, the argument handed to it
    kResultOf4 = 4,
    kResultOf8 = 8,
    kThreadLocal = 16,  // 8 bytes of the thread-local variable at the offset `argument`
};

// One thing to ask.
struct Question {
    ProbeKind kind;
    unsigned long long address;   // of the function
    unsigned long long argument;
};

struct Probe {
    PyObject_HEAD
    PyObject* weakrefs;
    vectorcallfunc vectorcall;
    std::vector<Question>* questions;
    std::vector<uint64_t>* answers;  // at its making
};

// Are the answers what they were?  Runs no Python code.
bool probe_holds(const Probe* probe);

bool is_probe(PyObject* object);

extern PyType_Spec probe_spec;

}  // namespace stator
