#include "hook.h"

#include "context.h"
#include "dispatch.h"
#include "finalizers.h"
#include "region.h"
#include "state.h"
#include "tail_call.h"
#include "tracebacks.h"
#include "tracing_suspended.h"

namespace stator {

namespace {

// Leaves the frame with the result of what stood in for it, or with the exception that is set.
PyObject* leave(PyThreadState* thread, Frame* frame, PyObject* result, PyObject** return_stub, bool from_tail_call = false) {
    Ref code = Ref::borrow(as_object(frame_code(frame)));
    result = leave_frame(thread, frame, result, return_stub);
    if (!result) tidy_traceback(reinterpret_cast<PyCodeObject*>(code.get()), from_tail_call);
    return result;
}

PyObject* run_without_hook(Context& context, PyThreadState* thread, Frame* frame) {
    RegionScope off(context, nullptr);
    return evaluate_next(context, thread, frame, 0);
}

// A frame that the hook has met in a region.
struct Met {
    Context& context;
    PyThreadState* thread;
    Frame* frame;
    CodeCache* cache;
    bool in_tail_call;
    Ending ending{};  // if it is a resumed one
};

PyObject* raise_from(const Met& met) { return leave(met.thread, met.frame, nullptr, &met.cache->return_stub); }

// The frame runs, and what it calls is traced. Where that shows, nothing but the frame keeps what ends in it: neither
// who calls the frame that it goes on with, nor it itself what it hands on to calls, which the interpreter then inlines.
PyObject* run_as_it_is(const Met& met) {
    if (!met.ending.slots) return evaluate_next(met.context, met.thread, met.frame, 0);
    if (!hand_over_arguments(met.frame, *met.cache->resumed, met.context.region)) return raise_from(met);
    return met.ending.is_operand ? run_without_hook(met.context, met.thread, met.frame)
                                 : evaluate_next(met.context, met.thread, met.frame, 0);
}

// Tells the region's owner that a frame runs for the sake of what it holds.
bool tell_owner(const Met& met) {
    Ref owner = Ref::borrow(met.context.region->owner);
    if (!owner || owner.get() == Py_None) return true;
    RegionScope off(met.context, nullptr);
    TracingSuspended suspended;
    PyObject *code = as_object(frame_code(met.frame)), *type = as_object(met.ending.type);
    return static_cast<bool>(Ref::steal(PyObject_CallMethod(owner.get(), "runs_for_finalizer", "OO", code, type)));
}

// Runs the entry's target in place of the frame. A tail call is made by whoever called the frame if that was one too.
PyObject* run_and_leave(const Met& met, Ref entry, OutputArray& outputs) {
    Context& context = met.context;
    if (met.in_tail_call && reinterpret_cast<Entry*>(entry.get())->drops_arguments) {
        for (Py_ssize_t i = argument_slots(frame_code(met.frame)); i-- > 0;) set_frame_value(met.frame, i, nullptr);
    }
    PyObject* result = run_target(context, context.region, reinterpret_cast<Entry*>(entry.get()), outputs);
    {  // an entry that was not kept takes its guards with it: their clean-up is not to be traced
        QuietScope quiet(context);
        entry = Ref();
    }
    bool has_tail_call = is_tail_call(result) && !met.in_tail_call;
    if (has_tail_call) {
        outputs.clear();
        Ref region = Ref::borrow(as_object(context.region));
        result = finish_tail_calls(context, context.region, result);
    }
    return leave(met.thread, met.frame, result, &met.cache->return_stub, has_tail_call);
}

// Runs what the entry says, unless that would keep what the frame lets go of.
PyObject* run_entry(const Met& met, Ref entry, OutputArray& outputs) {
    if (!(met.ending.slots & reinterpret_cast<Entry*>(entry.get())->released)) {
        return run_and_leave(met, std::move(entry), outputs);
    }
    outputs.clear();
    {
        QuietScope quiet(met.context);
        entry = Ref();
    }
    return tell_owner(met) ? run_as_it_is(met) : raise_from(met);
}

// What another thread or a collection changes while a frame is traced, the guards see: it is traced once more.
constexpr int kMostTraces = 16;

// Asks the miss handler for an entry whose guards the frame passes. Sets none where the frame's own bytecode is to run.
Outcome make_entry(Context& context, PyObject* region, PyObject* code, const Call& call, OutputArray& outputs,
                   Ref& entry) {
    for (int traces = 0; traces < kMostTraces; ++traces) {
        {
            RegionScope off(context, nullptr);
            entry = call_miss_handler(context, region, code, call);
        }
        if (!entry) return Outcome::kError;
        if (entry.get() == Py_None) return Outcome::kNative;
        Outcome outcome = run_new_entry(context, reinterpret_cast<Entry*>(entry.get()), call, outputs);
        if (outcome != Outcome::kMiss) return outcome;
    }
    QuietScope quiet(context);
    Ref text = failure_text(reinterpret_cast<Entry*>(entry.get())->program, call);
    if (text) {
        PyErr_Format(PyExc_RuntimeError, "a guard fails for the very call it was made for: %S", text.get());
    }
    return Outcome::kError;
}

// The entry that the miss handler makes is run on this very frame.
PyObject* miss(const Met& met, const Call& call) {
    Context& context = met.context;
    Ref region = Ref::borrow(as_object(context.region));
    Ref entry;
    OutputArray outputs;
    Outcome outcome = make_entry(context, region.get(), as_object(frame_code(met.frame)), call, outputs, entry);
    if (outcome == Outcome::kHit) return run_entry(met, std::move(entry), outputs);
    {
        QuietScope quiet(context);
        entry = Ref();
    }
    if (outcome == Outcome::kNative) return run_as_it_is(met);
    if (outcome == Outcome::kAlone) return run_without_hook(context, met.thread, met.frame);
    return raise_from(met);
}

}  // namespace

PyObject* eval_frame_hook(PyThreadState* thread, Frame* frame, int throwflag) {
    Context& context = thread_context();
    bool in_tail_call = context.tail_call && take_over_tail_call(context, frame_function(frame));
    if (state.hooked_threads == 0) remove_hook();  // another evaluation function was over it when it should have gone
    if (!context.region || throwflag || !frame_is_on_thread_stack(frame)) return evaluate_next(context, thread, frame, throwflag);
    PyCodeObject* code = frame_code(frame);
    if (!is_traceable(thread, code)) return evaluate_next(context, thread, frame, 0);
    CodeCache* cache = code_cache(code, true);
    if (!cache) return leave(thread, frame, nullptr, nullptr);
    Met met{context, thread, frame, cache, in_tail_call};
    if (cache->resumed) met.ending = find_ending(frame, *cache->resumed);
    if (cache->policy == Policy::kSkip) return run_as_it_is(met);
    if (cache->policy == Policy::kRunRecursively || stack_is_low(context) || c_recursion_is_low(thread)) {
        return run_without_hook(context, thread, frame);
    }
    ValueRoom room;
    Py_ssize_t count = argument_slots(code);
    Call call{frame_function(frame), frame_values(frame, count, room), count};
    OutputArray outputs;
    Ref entry;
    switch (find_entry(context, cache->code_entries(context.region), call, outputs, entry)) {
        case Outcome::kMiss:
            return miss(met, call);
        case Outcome::kNative:
            return run_as_it_is(met);
        case Outcome::kAlone:
            return run_without_hook(context, thread, frame);
        case Outcome::kError:
            return raise_from(met);
        case Outcome::kHit:
            break;
    }
    return run_entry(met, std::move(entry), outputs);
}

}  // namespace stator
