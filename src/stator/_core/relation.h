// Expressions over integers that a program assumed to be true (`x.size(0) % 8 == 0`).
//
// Python's own evaluation is the reference: what does not fit 64 bits, divides by zero or is no int is left to it.
// The steps are written by guards/expression.py.
#pragma once
#include "tensors.h"

namespace stator {

// What the operation RELATION needs: `expression` has `steps`, a letter each, and `operands` of those that have one.
std::shared_ptr<OpExtra> make_relation(PyObject* registers, PyObject* expression);

// The verdict that can be given without running any Python code.
Verdict relation_verdict(const Op& op, PyObject* const* registers);

}  // namespace stator
