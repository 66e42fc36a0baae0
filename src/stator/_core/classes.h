// What CPython does for classes of the program's, but not for those whose metaclass is `type`.
#pragma once
#include <Python.h>

namespace stator {

// set_metaclass(cls, metaclass): `cls.__class__ = metaclass`, for a class made at run time and a metaclass that adds
// no variables. CPython refuses it because `type` itself is immutable, not because anything in the class would differ.
PyObject* set_metaclass(PyObject*, PyObject* args);

}  // namespace stator
