// The checks: each answers yes or no; an exception that is no Exception may be left set with a no.
#pragma once
#include "program.h"

namespace stator {

bool check(const Op& op, PyObject* const* registers);

// What the operation of an instruction needs besides its operands; null (without an exception) for most.
std::shared_ptr<OpExtra> make_extra(OpCode code, PyObject* registers, PyObject* object);

// All registers a check reads, if these are more than the first one.
const std::vector<uint32_t>* more_registers(const Op& op);

// The version a class's attributes have now, 0 if there is none to rely on.  Versions are never given twice.
unsigned int type_version(PyTypeObject* type);

}  // namespace stator
