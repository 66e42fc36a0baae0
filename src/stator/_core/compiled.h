// The callable that stator.compile() gives out.
#pragma once
#include "region.h"

namespace stator {

struct Compiled {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject* function;
    Region* region;
    PyObject* dict;
    PyObject* weakrefs;
};

extern PyType_Spec compiled_spec;

}  // namespace stator
