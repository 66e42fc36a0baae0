// The recursion limit: generated code and the tracer neither use up what the program has left, nor give it more.
#pragma once
#include "compat.h"

namespace stator {

// How many calls of Python functions the thread may still nest; in 3.11 calls of C functions count too.
inline int& calls_remaining(PyThreadState* thread) {
#if PY_VERSION_HEX >= 0x030c0000
    return thread->py_recursion_remaining;
#else
    return thread->recursion_remaining;
#endif
}

// How deep C code may call itself; 0 where that counts as calls of Python functions do.
#if PY_VERSION_HEX >= 0x030d0000
inline constexpr long kCRecursionLimit = Py_C_RECURSION_LIMIT;
#elif PY_VERSION_HEX >= 0x030c0000
inline constexpr long kCRecursionLimit = C_RECURSION_LIMIT;
#else
inline constexpr long kCRecursionLimit = 0;
#endif

// What a C function that stands for an instruction takes of that.
#if PY_VERSION_HEX >= 0x030c0000
inline constexpr int kOneCCall = 0;
#else
inline constexpr int kOneCCall = 1;
#endif

// Lets the thread nest so many more calls while it exists.
class MoreDepth {
  public:
    MoreDepth(PyThreadState* thread, int more) : thread_(thread), more_(more) { calls_remaining(thread) += more; }
    ~MoreDepth() { calls_remaining(thread_) -= more_; }
    MoreDepth(const MoreDepth&) = delete;
    MoreDepth& operator=(const MoreDepth&) = delete;

  private:
    PyThreadState* thread_;
    int more_;
};

// call_within(depth, function, *args, **kwargs): vectorcall
PyObject* call_within(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names);

// calls_left(): how many calls the program may nest below the frame that the tracer or generated code stands for.
PyObject* calls_left(PyObject*, PyObject*);

}  // namespace stator
