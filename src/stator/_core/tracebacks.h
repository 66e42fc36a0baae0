// Tracebacks of exceptions that leave generated code.
#pragma once
#include "versions.h"

namespace stator {

// Is it generated code, or what that calls in place of an instruction?
bool is_generated_code(PyCodeObject* code);

// Takes the frames of generated code, and of what it calls to raise, out of the traceback of the exception that is
// set; and before them the entry of `own`, the unstarted frame they stood in for (null: none has been made).
// `from_tail_call`: the exception comes out of a call that the generated code has left to be made.
void tidy_traceback(PyCodeObject* own, bool from_tail_call = false);

}  // namespace stator
