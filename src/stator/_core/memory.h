// Whether tensors that a graph writes lie apart from the others it is given.
//
// A backend that gathers writes, or changes the order of reads and writes, is right only for tensors that lie apart in
// memory.  The rule is that of pytorch/graph/memory.py, which also words the operand.
#pragma once
#include "tensors.h"

namespace stator {

// What the operation APART needs: `rule` has `written`, the number of tensors, at the beginning, that are written,
// `itemsizes` of all of them, and the answer expected, `apart`.
std::shared_ptr<OpExtra> make_apart_check(PyObject* registers, PyObject* rule);

// The verdict that can be given without running any Python code.
Verdict apart_verdict(const Op& op, PyObject* const* registers);

}  // namespace stator
