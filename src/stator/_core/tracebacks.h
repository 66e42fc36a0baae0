// Tracebacks of exceptions that leave generated code.
#pragma once
#include "compat.h"

namespace stator {

// Takes the frames of generated code, and of what it calls to raise, out of the traceback of the exception that is
// set; and before them the entry of `own`, the unstarted frame they stood in for (null: none has been made).
void tidy_traceback(PyCodeObject* own);

}  // namespace stator
