// Objects that end when a resumed frame lets go of them, and whose end the program would notice.
//
// Generated code that stands for a frame keeps the frame's arguments until it is through; the frame itself would have
// let go of some in the middle. Nobody can tell, but where a `__del__` or the callback of a weak reference runs. The
// arguments of a resumed frame are variables and stack entries, and often nothing else refers to these.
#pragma once
#include <cstdint>

#include "context.h"
#include "frames.h"
#include "region.h"

namespace stator {

// Arguments of a frame, a bit each. The last bit is for those beyond, and for the cells of its function.
using Slots = uint64_t;

inline constexpr Slots kCells = Slots{1} << 63;

// What the arguments of a resumed frame alone keep alive and whose end would be noticed.
struct Ending {
    Slots slots = 0;          // the arguments that lead to it
    PyTypeObject* type = nullptr;  // of one such object; borrowed from it
    bool is_operand = false;  // one lies on the stack, where a call may take it
};

Ending find_ending(Frame* frame, const Resumed& resumed);

// Before a resumed frame runs as ordinary Python: the frame that it goes on with is to own its arguments, as it does.
// False with an exception set if memory has run out.
bool hand_over_arguments(Frame* frame, const Resumed& resumed, Region* region);

}  // namespace stator
