// Raising exceptions as they are, those among them of which CPython 3.11 learns only in the handler.
#pragma once
#include "versions.h"

namespace stator {

// Up to CPython 3.11 an exception that C code has set is made by the first handler.  This makes it while the frames are
// on the stack that its class may look at; the failure to make it comes up in the handler all the same.
void make_exception();

}  // namespace stator
