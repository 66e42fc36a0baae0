#include "shortcut.h"

#include <algorithm>

#include "checks.h"
#include "dicts.h"
#include "loads.h"
#include "state.h"
#include "tensors.h"

namespace stator {

namespace {

PyObject* as_py(const void* object) { return static_cast<PyObject*>(const_cast<void*>(object)); }

PyObject* key_of(const Op& op) { return op.code == OpCode::GLOBAL ? op.second : op.object; }

// A look-up that runs no Python code; false if that cannot be promised.
bool look_up(PyObject* dict, const Op& op, PyObject** found) {
    if (!has_plain_keys(dict)) return false;
    *found = dict_item(dict, key_of(op), op.hash);
    return true;
}

// The objects lie all over memory: has their first bytes fetched before they are needed.  Follows nothing.
void fetch_ahead(const Step& step) {
    __builtin_prefetch(step.object);
    if (step.kind == StepKind::kDict) __builtin_prefetch(step.expected);
    if (step.kind != StepKind::kTensor) return;
    const char* impl = static_cast<const char*>(step.expected);
    for (int line = 0; line < 3; line++) __builtin_prefetch(impl + 64 * line);
    __builtin_prefetch(reinterpret_cast<const void*>(step.number));
    __builtin_prefetch(reinterpret_cast<const void*>(step.number + 128));
}

bool cell_holds(PyObject* function, uint32_t index, const void* expected) {
    PyObject* closure = PyFunction_Check(function) ? PyFunction_GET_CLOSURE(function) : nullptr;
    if (!closure || index >= PyTuple_GET_SIZE(closure)) return false;
    return PyCell_GET(PyTuple_GET_ITEM(closure, index)) == expected;
}

}  // namespace

bool Shortcut::holds(const Step& step, const Program* program, const Call& call) {
    PyObject* object = as_py(step.object);
    PyObject* found;
    switch (step.kind) {
        case StepKind::kSlot:
            return step.index < call.count && call.slots[step.index] == object;
        case StepKind::kFunction:
            return call.function == object;
        case StepKind::kCell:
            return cell_holds(call.function, step.index, step.object);
        case StepKind::kType:
            return Py_TYPE(object) == step.expected;
        case StepKind::kPlace:
        case StepKind::kMember:
            return *static_cast<PyObject* const*>(step.object) == step.expected;
        case StepKind::kDict:
            found = *static_cast<PyObject* const*>(step.object);
            return found == step.expected && dict_version(found) == step.number;
        case StepKind::kVersion:
        case StepKind::kGlobals:
            return dict_version(object) == step.number;
        case StepKind::kTypeVersion:
            return type_version(reinterpret_cast<PyTypeObject*>(object)) == step.number;
        case StepKind::kLookup:
            return look_up(object, (*program->ops)[step.index], &found) && found == step.expected;
        case StepKind::kPresence:
            return look_up(object, (*program->ops)[step.index], &found) && (found != nullptr) == (step.number != 0);
        case StepKind::kListItem:
            return step.index < PyList_GET_SIZE(object) && PyList_GET_ITEM(object, step.index) == step.expected;
        case StepKind::kTupleItem:
            return step.index < PyTuple_GET_SIZE(object) && PyTuple_GET_ITEM(object, step.index) == step.expected;
        case StepKind::kContents:
            return PyCell_GET(object) == step.expected;
        case StepKind::kTensor:
            return read_tensor_verdict(*tensors_[step.index], object) == Verdict::kYes;
        case StepKind::kUnrecorded:
            return is_unrecorded(object);
        case StepKind::kCheck:
            return check((*program->ops)[step.index], registers_.data());
    }
    return false;
}

bool Shortcut::holds(const Program* program, const Call& call) {
    constexpr ptrdiff_t kAhead = 8;
    const Step* end = steps_.data() + steps_.size();
    for (const Step* step = steps_.data(); step != end; step++) {
        if (end - step > kAhead) fetch_ahead(step[kAhead]);
        if (holds(*step, program, call)) continue;
        failed_ = step;
        return false;
    }
    return true;
}

bool Shortcut::run_operations(const std::vector<uint32_t>& which, const Program* program, const Call& call) {
    for (uint32_t at : which) {
        const Op& op = (*program->ops)[at];
        if (op.code >= kFirstCheck) {
            if (!check(op, registers_.data())) return false;
            continue;
        }
        PyObject* loaded = load(op, call, registers_.data());
        if (!loaded) return false;
        registers_[targets_[at]] = loaded;
        filled_.push_back(targets_[at]);
    }
    return true;
}

void Shortcut::release() {
    for (uint32_t reg : filled_) Py_CLEAR(registers_[reg]);
    filled_.clear();
}

Shortcut::Result Shortcut::run_owned(const Program* program, const Call& call, OutputArray& outputs) {
    failed_ = nullptr;
    if (!run_operations(early_, program, call) || !holds(program, call)) return Result::kMissed;
    if (late_.empty()) return outputs.take(program, registers_.data()) ? Result::kPassed : Result::kMissed;
    std::vector<Ref> held;  // late operations may run code that drops what the steps have just proven
    held.reserve(needed_.size());
    for (uint32_t reg : needed_) held.push_back(Ref::borrow(registers_[reg]));
    if (!run_operations(late_, program, call)) return Result::kMissed;
    return outputs.take(program, registers_.data()) ? Result::kPassed : Result::kMissed;
}

Shortcut::Result Shortcut::run(const Program* program, const Call& call, OutputArray& outputs) {
    if (busy_) return Result::kMissed;  // a guard's own code, or another thread, calls the function again
    busy_ = true;
    Result result = run_owned(program, call, outputs);
    release();
    busy_ = false;
    return PyErr_Occurred() ? Result::kRaised : result;
}

Shortcut::Result Revalidation::run(const Program* program, const Call& call, OutputArray& outputs) {
    Shortcut::Result result = shortcut_->run(program, call, outputs);
    if (result == Shortcut::Result::kPassed) hits++;
    if (result == Shortcut::Result::kMissed && shortcut_->failed() && !shortcut_->busy()) note_failure();
    return result;
}

int Revalidation::traverse(visitproc visit, void* arg) const {
    if (!shortcut_) return 0;
    for (const Ref& type : shortcut_->types()) Py_VISIT(type.get());
    return 0;
}

void Revalidation::note_unsteady(const Step& step) {
    switch (step.kind) {
        case StepKind::kDict:
        case StepKind::kVersion:
            unsteady_.dicts.insert(step.index);
            break;
        case StepKind::kGlobals:
            unsteady_.globals.insert(step.object);
            break;
        case StepKind::kLookup:
            unsteady_.loads.insert(step.index);
            break;
        case StepKind::kListItem:
        case StepKind::kTupleItem:
        case StepKind::kContents:
        case StepKind::kMember:
            unsteady_.loads.insert(static_cast<uint32_t>(step.number));
            break;
        default:
            break;
    }
}

void Revalidation::note_failure() {
    constexpr unsigned long long kWorthIt = 8;  // hits that pay for having made it
    constexpr unsigned kLongest = 8;
    const Step* step = shortcut_->failed();
    note_unsteady(*step);
    failures_ = hits - hits_at_build_ >= kWorthIt ? 0 : std::min(failures_ + 1, kLongest);
    wait_ = (1U << failures_) - 1;
    shortcut_.reset();
}

namespace {

// The registers that are loaded from the call itself.
std::vector<uint32_t> root_registers(const Program* program) {
    std::vector<uint32_t> roots;
    uint32_t reg = 0;
    for (const Op& op : *program->ops) {
        if (op.code >= kFirstCheck) continue;
        if (op.code == OpCode::LOCAL || op.code == OpCode::FUNCTION || op.code == OpCode::CELL) roots.push_back(reg);
        reg++;
    }
    return roots;
}

// Those of them that something is loaded from.
std::unordered_set<uint32_t> bases(const Program* program) {
    std::unordered_set<uint32_t> found;
    for (const Op& op : *program->ops) {
        if (op.code < kFirstCheck && op.code > OpCode::CONST) found.insert(op.reg);
    }
    return found;
}

}  // namespace

// Makes a shortcut when the roots have stayed the same from one full pass to the next, or have changed often enough.
void Revalidation::consider(const Program* program, const Call& call, PyObject* const* registers) {
    constexpr unsigned kPatience = 4;
    if (wait_) {
        wait_--;
        return;
    }
    std::vector<uint32_t> roots = root_registers(program);
    std::unordered_set<uint32_t> used = bases(program), steady;
    bool changed = roots_.size() != roots.size();
    for (size_t i = 0; i < roots.size(); i++) {
        bool same = !roots_.empty() && roots_[i] == registers[roots[i]];
        if (same) steady.insert(roots[i]);
        if (!same && used.count(roots[i])) changed = true;
    }
    roots_.assign(roots.size(), nullptr);
    for (size_t i = 0; i < roots.size(); i++) roots_[i] = registers[roots[i]];
    if (changed && postponed_++ < kPatience) return;
    std::erase_if(steady, [&used](uint32_t reg) { return !used.count(reg); });
    postponed_ = 0;
    shortcut_ = build_shortcut(program, call, registers, steady, unsteady_);
    hits_at_build_ = hits;
    if (shortcut_) builds++;
    if (!shortcut_) wait_ = 255;
}

}  // namespace stator
