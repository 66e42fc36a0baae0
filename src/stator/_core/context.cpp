#include "context.h"

#include <pthread.h>

#include "hook.h"
#include "state.h"

namespace stator {

namespace {

thread_local Context context_of_thread;

// What must remain for the program itself once frames are no longer evaluated through the hook.
constexpr size_t kReserve = 1 << 20;

// Puts the hook on top of the evaluation functions, once. Another one that has been put over it (torch._dynamo's, while
// a function that torch has compiled runs) passes frames down to it: over that one it would pass them round in a circle.
void install_hook() {
    auto current = current_evaluator();
    if (current == eval_frame_hook) return;
    if (current == _PyEval_EvalFrameDefault) {
        state.next_eval = nullptr;
    } else if (state.hook_is_in_chain) {
        note_evaluator(current);
        return;
    } else {
        state.next_eval = current;
    }
    state.hook_is_in_chain = true;
    _PyInterpreterState_SetEvalFrameFunc(state.interpreter, eval_frame_hook);
}

// The lowest address of the thread's stack and how large it is; false where the system does not say.
bool find_stack(const char** lowest, size_t* size) {
#if defined(__APPLE__)
    *size = pthread_get_stacksize_np(pthread_self());
    *lowest = static_cast<const char*>(pthread_get_stackaddr_np(pthread_self())) - *size;  // it names the upper end
    return true;
#else
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return false;
    void* address = nullptr;
    pthread_attr_getstack(&attributes, &address, size);
    pthread_attr_destroy(&attributes);
    *lowest = static_cast<const char*>(address);
    return true;
#endif
}

const char* low_address() {
    const char* lowest = nullptr;
    size_t size = 0;
    if (!find_stack(&lowest, &size)) return reinterpret_cast<const char*>(1);
    return lowest + (size / 4 < kReserve ? size / 4 : kReserve);
}

}  // namespace

Context& thread_context() { return context_of_thread; }

void remove_hook() {
    if (current_evaluator() != eval_frame_hook) return;  // who has put another over it puts it back first
    auto next = state.next_eval ? state.next_eval : _PyEval_EvalFrameDefault;
    _PyInterpreterState_SetEvalFrameFunc(state.interpreter, next);
    state.hook_is_in_chain = false;
}

void note_evaluator(_PyFrameEvalFunction current) {
    if (state.next_eval == current) state.next_eval = nullptr;
}

PyObject* evaluate_next(Context& context, PyThreadState* thread, Frame* frame, int throwflag) {
    if (state.next_eval) note_evaluator(current_evaluator());
    if (!state.next_eval || context.passed_on == frame) return _PyEval_EvalFrameDefault(thread, frame, throwflag);
    Frame* outer = std::exchange(context.passed_on, frame);
    PyObject* result = state.next_eval(thread, frame, throwflag);
    context.passed_on = outer;
    return result;
}

bool ask_other_tracer(_PyFrameEvalFunction evaluator) {
    if (evaluator == eval_frame_hook) evaluator = state.next_eval;
    if (!evaluator || evaluator == _PyEval_EvalFrameDefault || !state.other_tracer) return false;
    Ref active = Ref::steal(PyObject_CallNoArgs(state.other_tracer));
    if (!active) PyErr_Clear();
    return active && active.get() != Py_None;
}

RegionScope::RegionScope(Context& context, Region* region) : context_(context), previous_(context.region) {
    swap(region);
}

RegionScope::~RegionScope() { swap(previous_); }

void RegionScope::swap(Region* region) {
    Region* old = std::exchange(context_.region, region);
    if (!old == !region) return;
    if (region) {
        state.hooked_threads++;
        install_hook();  // also where a thread has: whoever put another function over ours may have taken both away
    } else {
        if (--state.hooked_threads == 0) remove_hook();
    }
}

void find_stack_end(Context& context) { context.stack_low = low_address(); }

bool hook_installed() { return current_evaluator() == eval_frame_hook; }

void forget_other_threads() { state.hooked_threads = context_of_thread.region ? 1 : 0; }

}  // namespace stator
