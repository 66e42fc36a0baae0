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

// show_as(cls, name, function): who reads the class finds the function; calls through the type's slot go on as before.
PyObject* show_as(PyObject*, PyObject* args);

// call_held(cls, shown): a call of an instance calls what it holds as `_stator_call`; `__call__` is shown as `shown`.
PyObject* call_held(PyObject*, PyObject* args);

}  // namespace stator
