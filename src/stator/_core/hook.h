// The PEP 523 evaluation function.
#pragma once
#include "frames.h"

namespace stator {

PyObject* eval_frame_hook(PyThreadState* thread, Frame* frame, int throwflag);

}  // namespace stator
