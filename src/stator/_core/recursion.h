// The recursion limit: generated code and the tracer neither use up what the program has left, nor give it more.
#pragma once
#include "versions.h"

namespace stator {

// What a C function that stands for an instruction takes of the calls that remain.
inline constexpr int kOneCCall = kCallsOfCCount ? 1 : 0;

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

}  // namespace stator
