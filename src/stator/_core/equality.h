// Equality as guards mean it: the same type and an indistinguishable value (guards/equality.py says the same).
#pragma once
#include "ref.h"

namespace stator {

bool same_value(PyObject* a, PyObject* b);

// Immutable, and compared without running Python code.
bool is_plain(PyObject* value);

}  // namespace stator
