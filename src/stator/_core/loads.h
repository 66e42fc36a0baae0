// The loads: each gives a new reference, or null (without an exception) where the path does not exist.
#pragma once
#include "program.h"

namespace stator {

PyObject* load(const Op& op, const Call& call, PyObject* const* registers);

// What a GLOBAL has found in its dict. The dict holds it, and finds it again, for as long as it has this version.
struct GlobalMemo : OpExtra {
    uint64_t version = 0;  // 0: nothing to rely on
    PyObject* value = nullptr;
    bool equal = false;  // and the operation after it, an EQUALS of this value and an immutable one, passes
};

inline GlobalMemo* global_memo(const Op& op) { return static_cast<GlobalMemo*>(op.extra.get()); }

// The dict of an object's own attributes; borrowed, null if there is none.  Never a class's.
PyObject* instance_dict(PyObject* object);

// Where in its memory an object keeps an attribute that is read without running code (null in it: the attribute is
// None, or missing); null if it is not kept so.
PyObject** member_place(PyObject* object, PyObject* name);

// An item of a dict by a key with a known hash; borrowed, null if missing (or if a key's own code raised).
PyObject* dict_item(PyObject* dict, PyObject* key, Py_hash_t hash);

// Forgets an exception of the class Exception; any other stays set.
void forget_exception();

}  // namespace stator
