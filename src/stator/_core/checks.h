// The checks: each answers yes or no; an exception that is no Exception may be left set with a no.
#pragma once
#include "program.h"

namespace stator {

bool check(const Op& op, const Registers& registers);

// What the operation of an instruction needs besides its operands; null (without an exception) for most.
std::unique_ptr<OpExtra> make_extra(OpCode code, PyObject* registers, PyObject* object);

}  // namespace stator
