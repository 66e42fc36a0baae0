// Raising exceptions as they are, those among them of which CPython 3.11 learns only in the handler.
#pragma once
#include "versions.h"

namespace stator {

// raise_unchanged(exception): raises it, with no __context__ and no traceback entry added; an exception in a tuple
// takes the place of another in the next handler, as one does with which making that other has failed.  METH_O
PyObject* raise_unchanged(PyObject*, PyObject* exception);

// Up to CPython 3.11 an exception that C code has set is made by the first handler.  This makes it while the frames are
// on the stack that its class may look at; the failure to make it comes up in the handler all the same.
void make_exception();

}  // namespace stator
