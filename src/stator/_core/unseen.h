// Tracing, unseen: profilers, debuggers and coverage see the program's own frames, and not those of its tracer.
#pragma once
#include "versions.h"

namespace stator {

// Suspends the thread's trace and profile functions (PyThreadState_EnterTracing) while it exists.
class Unseen {
  public:
    Unseen();
    ~Unseen();
    Unseen(const Unseen&) = delete;
    Unseen& operator=(const Unseen&) = delete;

  private:
    bool entered_;
};

// call_seen(function, *args, **kwargs): in the midst of that, a call that they do see.  Vectorcall
PyObject* call_seen(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names);

}  // namespace stator
