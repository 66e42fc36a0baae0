// Regions (one per stator.compile() call), the caches of code objects, and the entries where the two meet.
#pragma once
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "chain.h"

namespace stator {

struct Region;
struct CodeCache;

// The entries of one code object in one region.
struct CodeEntries {
    Region* region;
    CodeCache* cache;
    ChainRef chain;  // replaced as a whole, so that a walk over it stays valid; null if empty
};

enum class Policy { kTrace = 0, kSkip = 1, kRunRecursively = 2 };

// Of code that goes on with a frame after a graph break (bytecode/continuation.py).
struct Resumed {
    Py_ssize_t first_operand = 0, end_of_operands = 0;  // those of its arguments that stay on the stack
    bool calls = false;  // it begins with a call of the frame inside: a function and a tuple, its first arguments
};

// What hangs from a code object (co_extra); freed with it.
struct CodeCache {
    Policy policy = Policy::kTrace;
    std::optional<Resumed> resumed;
    PyObject* return_stub = nullptr;  // see frames.h
    std::unordered_map<Region*, CodeEntries*> by_region;

    ~CodeCache();
    CodeEntries* code_entries(Region* region);  // null if there is none
    CodeEntries* make_entries(Region* region);

  private:
    CodeEntries* last_ = nullptr;  // those found last: there is mostly one region
    friend struct Region;
    friend void forget_entries(CodeEntries* code_entries);
};

struct Region {
    PyObject_HEAD
    PyObject* owner;
    PyObject* weakrefs;
    std::unordered_set<CodeEntries*>* all_entries;  // of every code object
};

// The cache of a code object; with `create`, null means an exception.
CodeCache* code_cache(PyCodeObject* code, bool create);

void free_code_cache(void* cache);

bool add_entry(Region* region, PyCodeObject* code, Entry* entry);

extern PyType_Spec region_spec;

}  // namespace stator
