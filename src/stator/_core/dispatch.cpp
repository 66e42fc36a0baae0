#include "dispatch.h"

#include <algorithm>

#include "loads.h"
#include "overrides.h"
#include "recursion.h"
#include "shortcut.h"
#include "state.h"
#include "tracing_suspended.h"

namespace stator {

namespace {

// Whether the target runs, or the frame itself: with no target, or near the recursion limit, which is the program's.
Outcome outcome_of(Entry* entry) {
    entry->hits++;
    if (entry->target == Py_None) return entry->alone ? Outcome::kAlone : Outcome::kNative;
    return calls_remaining(PyThreadState_Get()) > entry->depth ? Outcome::kHit : Outcome::kNative;
}

Outcome outcome_of(Entry* entry, Ref& held) {
    held = Ref::borrow(as_object(entry));
    return outcome_of(entry);
}

// What is known of a call while one program after the other is tried: `passed` operations of the last one hold,
// and the registers are those they loaded.
struct Walk {
    size_t passed = 0;

    // Tries the link's program from where it differs from the last one's; see run_program() for the outcome.
    Py_ssize_t next(const Link& link, const Call& call, Registers& registers) {
        if (passed < link.shared) return static_cast<Py_ssize_t>(passed);  // it fails where the last one did
        registers.truncate(link.registers);
        Py_ssize_t outcome = run_program(link.entry->program, call, registers, link.shared);
        if (outcome >= 0) passed = static_cast<size_t>(outcome);
        return outcome;
    }
};

// The prologues of a dispatch: each is run once, before the guards of the first entry that has it.
class Prologues {
  public:
    // False if an exception came out of it: then the guards are not to be checked. One that is no Exception stays set.
    bool run(const Entry* entry) {
        if (!entry->prologue) return true;
        for (const auto& [prologue, passed] : run_) {
            if (prologue.get() == entry->prologue) return passed;
        }
        Ref prologue = Ref::borrow(entry->prologue);
        Ref result = Ref::steal(PyObject_CallNoArgs(prologue.get()));
        if (!result) forget_exception();
        run_.emplace_back(std::move(prologue), static_cast<bool>(result));
        return static_cast<bool>(result);
    }

  private:
    std::vector<std::pair<Ref, bool>> run_;
};

// Tries the entries that have a shortcut, and then all by walking.
Outcome find_in_chain(const Chain& chain, const Call& call, OutputArray& outputs, Ref& entry) {
    Prologues prologues;
    for (const Link& link : chain.links()) {
        Program* program = link.entry->program;
        if (!program->revalidation->has_shortcut()) continue;
        if (!prologues.run(link.entry)) {
            if (PyErr_Occurred()) return Outcome::kError;
            continue;
        }
        Shortcut::Result result = program->revalidation->run(program, call, outputs);
        if (result == Shortcut::Result::kRaised) return Outcome::kError;
        if (result == Shortcut::Result::kMissed) continue;
        if (is_strict(program) && !reference_agrees(program, call, &outputs)) return Outcome::kError;
        return outcome_of(link.entry, entry);
    }
    Registers registers;
    Walk walk;
    for (const Link& link : chain.links()) {
        Program* program = link.entry->program;
        Py_ssize_t outcome = kRaised;
        if (prologues.run(link.entry)) {
            outcome = walk.next(link, call, registers);
        } else if (!PyErr_Occurred()) {
            continue;
        }
        bool passed = outcome == kPassed;
        bool fine = outcome != kRaised && (!passed || outputs.take(program, registers.data())) &&
                    (!is_strict(program) || reference_agrees(program, call, passed ? &outputs : nullptr));
        if (!fine) {
            ExceptionKept kept;
            registers.truncate(0);
            return Outcome::kError;
        }
        if (passed) program->revalidation->note_pass(program, call, registers.data());
        if (passed) return outcome_of(link.entry, entry);
    }
    return Outcome::kMiss;
}

}  // namespace

Outcome find_entry(Context& context, CodeEntries* code_entries, const Call& call, OutputArray& outputs, Ref& entry) {
    if (!code_entries || !code_entries->chain) return Outcome::kMiss;
    QuietScope quiet(context);
    OverridesOff overrides;
    auto chain = code_entries->chain;  // a guard may run code that adds or clears entries
    return find_in_chain(*chain, call, outputs, entry);
}

Outcome run_new_entry(Context& context, Entry* entry, const Call& call, OutputArray& outputs) {
    QuietScope quiet(context);
    OverridesOff overrides;
    if (!Prologues().run(entry)) return PyErr_Occurred() ? Outcome::kError : Outcome::kMiss;
    Py_ssize_t outcome = pass_program(entry->program, call, outputs);
    if (outcome == kRaised) return Outcome::kError;
    return outcome == kPassed ? outcome_of(entry) : Outcome::kMiss;
}

// While it exists, generated code or the tracer stands for a frame of the program: what that may still call is known.
class StandsForFrame {
  public:
    explicit StandsForFrame(Context& context)
        : context_(context), outer_(std::exchange(context.calls_remaining, calls_remaining(PyThreadState_Get()))) {}
    ~StandsForFrame() { context_.calls_remaining = outer_; }
    StandsForFrame(const StandsForFrame&) = delete;
    StandsForFrame& operator=(const StandsForFrame&) = delete;

  private:
    Context& context_;
    int outer_;
};

PyObject* run_target(Context& context, Region* region, Entry* entry, const OutputArray& outputs) {
    Ref target = Ref::borrow(entry->target);
    StandInScope standing(context, region);
    RegionScope off(context, nullptr);
    StandsForFrame counted(context);
    size_t count = outputs.count() | PY_VECTORCALL_ARGUMENTS_OFFSET;
    return PyObject_Vectorcall(target.get(), outputs.data(), count, nullptr);
}

// One traced call, of a Python function or of C code by C code, takes about ten host frames.
static constexpr int kTracerDepth = 12 * std::max(1000L, kCRecursionLimit);

Ref call_miss_handler(Context& context, PyObject* region, PyObject* code, const Call& call) {
    if (!state.miss_handler) return Ref::borrow(Py_None);
    Ref slots = slots_as_tuple(call);
    Ref list = slots ? Ref::steal(PySequence_List(slots.get())) : Ref();
    if (!list) return Ref();
    Ref handler = Ref::borrow(state.miss_handler);
    PyObject* args[] = {region, call.function, code, list.get()};
    TracingSuspended suspended;
    StandsForFrame counted(context);
    OverridesOff overrides;
    MoreDepth more(PyThreadState_Get(), kTracerDepth);
    Ref entry = Ref::steal(PyObject_Vectorcall(handler.get(), args, 4, nullptr));
    if (!entry || entry.get() == Py_None || Py_IS_TYPE(entry.get(), state.entry_type)) return entry;
    if (PyExceptionInstance_Check(entry.get())) {  // raised here, its traceback begins with the program's frames
        PyErr_SetObject(as_object(Py_TYPE(entry.get())), entry.get());
        return Ref();
    }
    PyErr_Format(PyExc_TypeError, "the miss handler returned %.100s, neither an Entry nor None nor an exception",
                 Py_TYPE(entry.get())->tp_name);
    return Ref();
}

}  // namespace stator
