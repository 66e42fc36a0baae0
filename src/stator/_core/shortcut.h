// Revalidation: passing a program again without walking it.
//
// After a full pass it is written down what made its loads and checks come out as they did: which object every
// argument slot held, each object's type, the version of each dict.  A later call for which all of that is
// unchanged passes for the same reasons, and the registers hold the same objects.
//
// No object written down is owned, but for classes, so that no object lives a moment longer for it.  What makes it safe to look at an
// object again is the order of the steps: an object is touched only after the step that shows it to be alive, for
// its container is alive and still holds this very address.  Between the first step and the last no Python code
// runs and the GIL is kept.  An address reached through a dict whose version is unchanged is the same object as
// before ("kept"); one reached otherwise may be a new object in an old place ("placed"), and everything the
// program asked of its contents is asked again.
#pragma once
#include <memory>
#include <unordered_set>
#include <vector>

#include "program.h"
#include "state.h"

namespace stator {

enum class StepKind : unsigned char {
    kSlot,         // argument slot `index` holds `object`
    kFunction,     // the function is `object`
    kCell,         // closure cell `index` of the function holds `object`
    kType,         // the type of `object` is `expected`
    kPlace,        // the pointer at `object` is `expected`: an instance's dict, a function's code
    kMember,       // the same: what a slot of an object holds
    kDict,         // the same, and that dict has the version `number`
    kVersion,      // the dict `object` has the version `number`
    kGlobals,      // the same, of a module's globals
    kTypeVersion,  // the class `object` has the version `number`
    kLookup,       // the dict `object` has `expected` for the key of operation `index` (null: it has not the key)
    kPresence,     // whether the dict `object` has the key of operation `index` is `number`
    kListItem,     // item `index` of the list `object` is `expected`
    kTupleItem,
    kContents,  // the cell `object` holds `expected`
    kTensor,    // `object` is a tensor as tensor check `index` wants it
    kUnrecorded,  // autograd keeps nothing about the tensor `object`
    kCheck,     // the check `index` passes; it runs no Python code
};

// 32 bytes: large models make tens of thousands, and what they cost is memory traffic.
struct Step {
    const void* object;
    const void* expected;  // for kTensor: where its impl was, to be fetched ahead; not relied on
    uint64_t number;       // for kTensor: the same of its AutogradMeta; for items and contents: the operation
    uint32_t index;        // for kDict and kVersion: the register that led to the dict
    StepKind kind;
};

struct TensorCheck;

class Shortcut {
  public:
    // Tries to pass: the outputs are taken on success.  kMissed means: walk.
    enum class Result { kPassed, kMissed, kRaised };
    Result run(const Program* program, const Call& call, OutputArray& outputs);

    size_t size() const { return steps_.size(); }
    const std::vector<Ref>& types() const { return types_; }
    bool busy() const { return busy_; }
    // The step that failed last, null if it was none of them.
    const Step* failed() const { return failed_; }

  private:
    friend class ShortcutBuilder;
    bool holds(const Program* program, const Call& call);
    bool holds(const Step& step, const Program* program, const Call& call);
    bool run_operations(const std::vector<uint32_t>& which, const Program* program, const Call& call);
    Result run_owned(const Program* program, const Call& call, OutputArray& outputs);
    void release();

    std::vector<Step> steps_;
    std::vector<const TensorCheck*> tensors_;  // owned by the program's operations
    std::vector<Ref> types_;           // the classes that are expected: their addresses must stay theirs
    std::vector<uint32_t> early_;      // operations on what is new in each call, run before the steps
    std::vector<uint32_t> late_;       // those that need both that and what the steps prove, run after them
    std::vector<uint32_t> needed_;     // proven registers that outlive the first late operation
    std::vector<uint32_t> targets_;    // by operation: the register a load fills
    std::vector<PyObject*> registers_;  // proven ones: borrowed; new ones: owned during a run, else null
    std::vector<uint32_t> filled_;      // new ones of this run
    const Step* failed_ = nullptr;
    bool busy_ = false;
};

// What was found changed before, and is not relied on again.
struct Unsteady {
    std::unordered_set<uint32_t> dicts;  // by the register that led to them: their contents are looked up
    std::unordered_set<const void*> globals;  // the same; the program owns them
    std::unordered_set<uint32_t> loads;  // operations: their results are taken as new
};

// A program's shortcut and when to make one.
class Revalidation {
  public:
    Shortcut::Result run(const Program* program, const Call& call, OutputArray& outputs);
    // To be told of each full pass, with its registers.
    void note_pass(const Program* program, const Call& call, PyObject* const* registers) {
        if (!shortcut_ && program->ops->size() >= state.revalidation_minimum) consider(program, call, registers);
    }

    bool has_shortcut() const { return shortcut_ != nullptr; }
    int traverse(visitproc visit, void* arg) const;
    size_t steps() const { return shortcut_ ? shortcut_->size() : 0; }
    unsigned long long hits = 0;
    unsigned long long builds = 0;

  private:
    void consider(const Program* program, const Call& call, PyObject* const* registers);
    void note_failure();
    void note_unsteady(const Step& step);

    std::unique_ptr<Shortcut> shortcut_;
    std::vector<const void*> roots_;           // what the roots held in the last full pass: addresses, never followed
    Unsteady unsteady_;
    unsigned long long hits_at_build_ = 0;
    unsigned failures_ = 0;   // in a row
    unsigned wait_ = 0;       // full passes to let go by
    unsigned postponed_ = 0;  // how often, because a root had changed
};

// Writes down what made the full pass succeed; null if too little of it can be.
std::unique_ptr<Shortcut> build_shortcut(const Program* program, const Call& call, PyObject* const* registers,
                                         const std::unordered_set<uint32_t>& steady_roots,
                                         const Unsteady& unsteady);

}  // namespace stator
