#include "context.h"

#include <pthread.h>

#include "hook.h"
#include "state.h"

namespace stator {

namespace {

thread_local Context context_of_thread;

// What must remain for the program itself once frames are no longer evaluated through the hook.
constexpr size_t kReserve = 1 << 20;

void install_hook() {
    PyInterpreterState* interpreter = PyInterpreterState_Get();
    auto current = _PyInterpreterState_GetEvalFrameFunc(interpreter);
    if (current == eval_frame_hook) return;
    state.next_eval = current;
    _PyInterpreterState_SetEvalFrameFunc(interpreter, eval_frame_hook);
}

void remove_hook() {
    PyInterpreterState* interpreter = PyInterpreterState_Get();
    // somebody who installed an evaluation function over ours removes it before ours is reached again
    if (_PyInterpreterState_GetEvalFrameFunc(interpreter) != eval_frame_hook) return;
    _PyInterpreterState_SetEvalFrameFunc(interpreter, state.next_eval);
}

const char* low_address() {
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return reinterpret_cast<const char*>(1);
    void* lowest = nullptr;
    size_t size = 0;
    pthread_attr_getstack(&attributes, &lowest, &size);
    pthread_attr_destroy(&attributes);
    size_t reserve = size / 4 < kReserve ? size / 4 : kReserve;
    return static_cast<const char*>(lowest) + reserve;
}

}  // namespace

Context& thread_context() { return context_of_thread; }

RegionScope::RegionScope(Context& context, Region* region) : context_(context), previous_(context.region) {
    swap(region);
}

RegionScope::~RegionScope() { swap(previous_); }

void RegionScope::swap(Region* region) {
    Region* old = std::exchange(context_.region, region);
    if (!old == !region) return;
    if (region) {
        if (state.hooked_threads++ == 0) install_hook();
    } else {
        if (--state.hooked_threads == 0) remove_hook();
    }
}

bool stack_is_low(Context& context) {
    if (!context.stack_low) context.stack_low = low_address();
    return static_cast<const char*>(__builtin_frame_address(0)) < context.stack_low;
}

bool hook_installed() {
    return _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get()) == eval_frame_hook;
}

}  // namespace stator
