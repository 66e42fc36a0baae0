// Probes: has a state that C functions report changed?
#pragma once
#include <vector>

#include "ref.h"

namespace stator {

// One thing to ask.
struct Question {
    int kind;                     // see ask() in probe.cpp
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

// set_thread_local_symbol(library, name): the thread-local variable that questions of kind 16 read.
PyObject* set_thread_local_symbol(PyObject* module, PyObject* args);

extern PyType_Spec probe_spec;

}  // namespace stator
