// Tracing, unseen: profilers, debuggers and coverage see the program's own frames, and not those of its tracer.
#pragma once
#include "versions.h"

namespace stator {

// Suspends the thread's trace and profile functions (PyThreadState_EnterTracing) while it exists.
class TracingSuspended {
  public:
    TracingSuspended();
    ~TracingSuspended();
    TracingSuspended(const TracingSuspended&) = delete;
    TracingSuspended& operator=(const TracingSuspended&) = delete;

  private:
    bool entered_;
};

}  // namespace stator
