// torch's overrides of its own functions are off while guards look at tensors, where there are modes: these would be told
// of each attribute that is read.
#pragma once
#include "state.h"

namespace stator {

// What torch calls a thread's state of overrides.
enum : int { kOverridesOn = 0, kOverridesOff = 2 };

// Has a scope of the thread turned them off?
inline thread_local bool overrides_are_off = false;

class OverridesOff {
  public:
    OverridesOff() {
        const Overrides& torch = state.overrides;
        if (overrides_are_off || !torch.count_modes || torch.count_modes() == 0 || torch.get() != kOverridesOn) return;
        torch.set(kOverridesOff);
        overrides_are_off = turned_off_ = true;
    }
    ~OverridesOff() {
        if (!turned_off_) return;
        state.overrides.set(kOverridesOn);
        overrides_are_off = false;
    }
    OverridesOff(const OverridesOff&) = delete;
    OverridesOff& operator=(const OverridesOff&) = delete;

  private:
    bool turned_off_ = false;
};

}  // namespace stator
