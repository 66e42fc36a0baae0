// Hashes that are given to objects rather than asked of them.
#pragma once
#include "ref.h"

namespace stator {

// The object's hash is used: a weak reference whose hash was never taken has none once its referent is gone.
inline void remember_hash(PyObject* object, Py_hash_t hash) {
    if (PyWeakref_CheckRef(object)) reinterpret_cast<PyWeakReference*>(object)->hash = hash;
}

}  // namespace stator
