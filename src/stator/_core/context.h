// The region a thread is in, and with it whether the frame hook is wanted.
#pragma once
#include <climits>
#include <utility>

#include "frames.h"
#include "state.h"

namespace stator {

struct Region;
struct TailCall;

inline constexpr int kUnlimited = INT_MAX;

struct Context {
    Region* region = nullptr;         // borrowed: whoever entered it holds it
    Region* standing_in = nullptr;    // borrowed: the region whose target runs, the hook being off meanwhile
    TailCall* tail_call = nullptr;        // borrowed: the call about to begin its frame, see tail_call.h
    int calls_remaining = kUnlimited; // of the program, where generated code or the tracer stands for a frame of it
    Frame* passed_on = nullptr;       // the frame that the next evaluation function is about to run
    const char* stack_low = nullptr;  // below this address little C stack is left; null: not yet looked up
};

Context& thread_context();

// Sets the thread's region for a C++ scope (null: none) and installs or removes the frame hook as needed.
class RegionScope {
  public:
    RegionScope(Context& context, Region* region);
    ~RegionScope();
    RegionScope(const RegionScope&) = delete;
    RegionScope& operator=(const RegionScope&) = delete;

  private:
    void swap(Region* region);
    Context& context_;
    Region* previous_;
};

// Sets the thread's region to none while guards run, leaving the hook as it is: the guards' own Python code is not
// to be traced, and most have none.
class QuietScope {
  public:
    explicit QuietScope(Context& context) : context_(context), previous_(std::exchange(context.region, nullptr)) {}
    ~QuietScope() { context_.region = previous_; }
    QuietScope(const QuietScope&) = delete;
    QuietScope& operator=(const QuietScope&) = delete;

  private:
    Context& context_;
    Region* previous_;
};

// While it exists, a target of the region runs.
class StandInScope {
  public:
    StandInScope(Context& context, Region* region)
        : context_(context), previous_(std::exchange(context.standing_in, region)) {}
    ~StandInScope() { context_.standing_in = previous_; }
    StandInScope(const StandInScope&) = delete;
    StandInScope& operator=(const StandInScope&) = delete;

  private:
    Context& context_;
    Region* previous_;
};

void find_stack_end(Context& context);

// Is little C stack left on this thread?
inline bool stack_is_low(Context& context) {
    if (!context.stack_low) find_stack_end(context);
    return static_cast<const char*>(__builtin_frame_address(0)) < context.stack_low;
}

bool hook_installed();

// Takes the hook away, unless another evaluation function is over it.
void remove_hook();

// The evaluation function that was beneath the hook may have been put over it meanwhile: it is beneath no longer.
void note_evaluator(_PyFrameEvalFunction current);

// Runs a frame as it would run without the hook. A frame that comes back here meets the interpreter itself.
PyObject* evaluate_next(Context& context, PyThreadState* thread, Frame* frame, int throwflag);

inline _PyFrameEvalFunction current_evaluator() { return _PyInterpreterState_GetEvalFrameFunc(state.interpreter); }

// The same, where an evaluation function is installed.
bool ask_other_tracer(_PyFrameEvalFunction evaluator);

// Does another tracer (state.other_tracer) want to see what this thread runs? It would have installed its function.
inline bool another_tracer_is_active() {
    auto evaluator = current_evaluator();
    return evaluator != _PyEval_EvalFrameDefault && ask_other_tracer(evaluator);
}

// In the child of a fork, no other thread is in a region.
void forget_other_threads();

}  // namespace stator
