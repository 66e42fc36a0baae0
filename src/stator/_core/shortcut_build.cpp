// Writing down why a full pass succeeded; see shortcut.h.
#include <set>
#include <tuple>

#include "checks.h"
#include "dicts.h"
#include "equality.h"
#include "loads.h"
#include "shortcut.h"
#include "tensors.h"

namespace stator {

namespace {

enum class Trust : unsigned char {
    kNew,     // may be another object in each call
    kPlaced,  // at the same address as before
    kKept,    // the same object as before
};

}  // namespace

class ShortcutBuilder {
  public:
    ShortcutBuilder(const Program* program, const Call& call, PyObject* const* registers,
                    const std::unordered_set<uint32_t>& steady_roots, const Unsteady& unsteady)
        : program_(program), call_(call), registers_(registers), steady_roots_(steady_roots), unsteady_(unsteady) {}

    std::unique_ptr<Shortcut> build();

  private:
    const Op& op(uint32_t at) const { return (*program_->ops)[at]; }
    bool is_proven(uint32_t reg) const { return trust_[reg] != Trust::kNew; }

    Trust prove_load(uint32_t at);
    bool prove_check(uint32_t at);
    bool find_proof(uint32_t at);

    // The proofs that the rows of ops.h name.
    Trust prove_argument(uint32_t at, PyObject* value);
    Trust prove_function(uint32_t at, PyObject* value);
    Trust prove_closure(uint32_t at, PyObject* value);
    Trust prove_global(uint32_t at, PyObject* value);
    Trust prove_constant(uint32_t, PyObject*) { return Trust::kKept; }
    Trust prove_attribute(uint32_t at, PyObject* value);
    Trust prove_member(uint32_t at, PyObject* value);
    Trust prove_instance_dict(uint32_t at, PyObject* value);
    Trust prove_type(uint32_t at, PyObject* value);
    Trust prove_type_attribute(uint32_t at, PyObject* value);
    Trust prove_item(uint32_t at, PyObject* value);
    Trust prove_dict_item(uint32_t at, PyObject* value);
    Trust prove_dict_key(uint32_t at, PyObject* value);
    Trust prove_contents(uint32_t at, PyObject* value);
    Trust load_again(uint32_t, PyObject*) { return Trust::kNew; }  // it may run Python code
    bool prove_type_is(uint32_t at);
    bool prove_address(uint32_t) { return true; }  // the registers hold the same addresses
    bool prove_value(uint32_t at);
    bool prove_length(uint32_t at);
    bool prove_keys(uint32_t at);
    bool prove_presence(uint32_t at);
    bool prove_no_attribute(uint32_t at);
    bool prove_class_attribute(uint32_t at);
    bool prove_mro(uint32_t at);
    bool prove_code(uint32_t at);
    bool prove_tensor(uint32_t at);
    bool prove_unrecorded(uint32_t at);
    bool run_again(uint32_t) { return false; }

    void pin_type(uint32_t reg);
    PyObject* pin_instance_dict(uint32_t reg, bool* contents);
    bool pin_version(uint32_t reg);
    bool has_now(PyObject* dict, const Op& op, PyObject* value) const;
    bool pin_type_version(PyTypeObject* type, PyObject* name);
    Trust by_lookup(uint32_t at, PyObject* dict, PyObject* value);
    bool by_presence(uint32_t at, PyObject* dict, bool present);
    bool recheck(uint32_t at);

    void leave_to_run(uint32_t at, bool is_load, uint32_t reg);
    void add(StepKind kind, uint32_t index, const void* object, const void* expected = nullptr, uint64_t number = 0);
    Trust prove_root(uint32_t at, StepKind kind, PyObject* value);
    uint32_t tensor_index(const TensorCheck* check);

    const Program* program_;
    const Call& call_;
    PyObject* const* registers_;
    const std::unordered_set<uint32_t>& steady_roots_;
    const Unsteady& unsteady_;
    std::unique_ptr<Shortcut> made_ = std::make_unique<Shortcut>();
    std::vector<Trust> trust_;
    std::vector<bool> is_late_;  // new registers that a late operation fills
    std::set<uint32_t> needed_;
    std::set<std::tuple<StepKind, const void*, uint32_t>> seen_;
    std::unordered_set<PyTypeObject*> owned_types_;
    size_t proven_ = 0;
};

void ShortcutBuilder::add(StepKind kind, uint32_t index, const void* object, const void* expected,
                          uint64_t number) {
    bool by_object = kind == StepKind::kType || kind == StepKind::kPlace || kind == StepKind::kDict ||
                     kind == StepKind::kMember || kind == StepKind::kVersion || kind == StepKind::kGlobals ||
                     kind == StepKind::kTypeVersion;
    if (!seen_.emplace(kind, object, by_object ? 0 : index).second) return;
    made_->steps_.push_back({object, expected, number, index, kind});
}

// What an object of this address is: without it nothing about its layout can be relied on.  The same object of a
// built-in type stays of it (only modules may be given another class).
void ShortcutBuilder::pin_type(uint32_t reg) {
    PyTypeObject* type = Py_TYPE(registers_[reg]);
    bool is_fixed = PyType_HasFeature(type, Py_TPFLAGS_IMMUTABLETYPE) && !PyModule_Check(registers_[reg]);
    if (is_fixed && trust_[reg] == Trust::kKept) return;
    if (owned_types_.insert(type).second) made_->types_.push_back(Ref::borrow(as_object(type)));
    add(StepKind::kType, 0, registers_[reg], type);
}

// The instance's dict is the one it has now (null: it has none), and if possible with the contents it has now.
// Never for classes.
PyObject* ShortcutBuilder::pin_instance_dict(uint32_t reg, bool* contents) {
    pin_type(reg);
    *contents = false;
    PyObject** place = _PyObject_GetDictPtr(registers_[reg]);
    if (!place) return nullptr;
    uint64_t version = *place && !unsteady_.dicts.count(reg) ? dict_version(*place) : 0;
    *contents = version != 0;
    if (version != 0) {
        add(StepKind::kDict, reg, place, *place, version);
    } else {
        add(StepKind::kPlace, 0, place, *place);
    }
    return *place;
}

// The dict in the register has the contents it has now; false if that cannot be told by a version.
bool ShortcutBuilder::pin_version(uint32_t reg) {
    uint64_t version = unsteady_.dicts.count(reg) ? 0 : dict_version(registers_[reg]);
    if (version == 0) return false;
    add(StepKind::kVersion, reg, registers_[reg], nullptr, version);
    return true;
}

bool ShortcutBuilder::pin_type_version(PyTypeObject* type, PyObject* name) {
    _PyType_Lookup(type, name);  // gives the class a version if it has none
    unsigned int version = type_version(type);
    if (version == 0) return false;
    add(StepKind::kTypeVersion, 0, type, nullptr, version);
    return true;
}

// Does a look-up that runs no Python code find the value there now?  The walk may have run code that changed it.
bool ShortcutBuilder::has_now(PyObject* dict, const Op& op, PyObject* value) const {
    PyObject* key = op.code == OpCode::GLOBAL ? op.second : op.object;
    return PyUnicode_CheckExact(key) && has_plain_keys(dict) && dict_item(dict, key, op.hash) == value;
}

Trust ShortcutBuilder::by_lookup(uint32_t at, PyObject* dict, PyObject* value) {
    if (!has_now(dict, op(at), value)) return Trust::kNew;
    add(StepKind::kLookup, at, dict, value);
    return Trust::kPlaced;
}

bool ShortcutBuilder::by_presence(uint32_t at, PyObject* dict, bool present) {
    if (!PyUnicode_CheckExact(op(at).object) || !has_plain_keys(dict)) return false;
    add(StepKind::kPresence, at, dict, nullptr, present);
    return true;
}

bool ShortcutBuilder::recheck(uint32_t at) {
    add(StepKind::kCheck, at, reads_register(op(at).code) ? registers_[op(at).reg] : nullptr);
    return true;
}

Trust ShortcutBuilder::prove_global(uint32_t at, PyObject* value) {
    PyObject* globals = op(at).object;
    uint64_t version = unsteady_.globals.count(globals) ? 0 : dict_version(globals);
    if (version == 0 || !has_now(globals, op(at), value)) return by_lookup(at, globals, value);
    add(StepKind::kGlobals, 0, globals, nullptr, version);
    return Trust::kKept;
}

Trust ShortcutBuilder::prove_attribute(uint32_t at, PyObject* value) {
    uint32_t reg = op(at).reg;
    if (PyType_Check(registers_[reg])) return prove_type_attribute(at, value);
    bool contents;
    PyObject* dict = pin_instance_dict(reg, &contents);
    if (!dict || !has_now(dict, op(at), value)) return Trust::kNew;
    return contents ? Trust::kKept : by_lookup(at, dict, value);
}

Trust ShortcutBuilder::prove_type_attribute(uint32_t at, PyObject* value) {
    uint32_t reg = op(at).reg;
    auto* cls = reinterpret_cast<PyTypeObject*>(registers_[reg]);
    pin_type(reg);
    if (!pin_type_version(cls, op(at).object)) return Trust::kNew;
    Ref now = Ref::steal(load(op(at), call_, registers_));
    return now.get() == value ? Trust::kKept : Trust::kNew;
}

// An attribute that lies in the object's memory (a slot, or as a function's closure) and runs no code when it is read.
Trust ShortcutBuilder::prove_member(uint32_t at, PyObject* value) {
    uint32_t reg = op(at).reg;
    PyTypeObject* type = Py_TYPE(registers_[reg]);
    PyObject** place = member_place(registers_[reg], op(at).object);
    if (!place || (*place ? *place : Py_None) != value) return Trust::kNew;
    if (!PyType_HasFeature(type, Py_TPFLAGS_IMMUTABLETYPE) && !pin_type_version(type, op(at).object)) {
        return Trust::kNew;
    }
    pin_type(reg);
    add(StepKind::kMember, 0, place, *place, at);
    return Trust::kPlaced;
}

Trust ShortcutBuilder::prove_dict_item(uint32_t at, PyObject* value) {
    uint32_t reg = op(at).reg;
    PyObject* dict = registers_[reg];
    pin_type(reg);
    if (!has_now(dict, op(at), value)) return Trust::kNew;
    return pin_version(reg) ? Trust::kKept : by_lookup(at, dict, value);
}

Trust ShortcutBuilder::prove_item(uint32_t at, PyObject* value) {
    uint32_t reg = op(at).reg;
    PyObject* sequence = registers_[reg];
    bool is_tuple = PyTuple_Check(sequence);
    Ref now = Ref::steal(load(op(at), call_, registers_));
    if (now.get() != value) return Trust::kNew;
    if (is_tuple && trust_[reg] == Trust::kKept) return Trust::kKept;
    pin_type(reg);
    add(is_tuple ? StepKind::kTupleItem : StepKind::kListItem, static_cast<uint32_t>(op(at).index), sequence, value, at);
    return Trust::kPlaced;
}

Trust ShortcutBuilder::prove_dict_key(uint32_t at, PyObject* value) {
    uint32_t reg = op(at).reg;
    pin_type(reg);
    if (PyODict_Check(registers_[reg])) return Trust::kNew;  // its order has no version
    Ref now = Ref::steal(load(op(at), call_, registers_));
    return now.get() == value && pin_version(reg) ? Trust::kKept : Trust::kNew;
}

// What is loaded from the call itself.
Trust ShortcutBuilder::prove_root(uint32_t at, StepKind kind, PyObject* value) {
    Ref now = Ref::steal(load(op(at), call_, registers_));
    if (!steady_roots_.count(made_->targets_[at]) || now.get() != value) return Trust::kNew;
    add(kind, static_cast<uint32_t>(op(at).index), value);
    return Trust::kPlaced;
}

Trust ShortcutBuilder::prove_argument(uint32_t at, PyObject* value) { return prove_root(at, StepKind::kSlot, value); }

Trust ShortcutBuilder::prove_function(uint32_t at, PyObject* value) {
    return prove_root(at, StepKind::kFunction, value);
}

Trust ShortcutBuilder::prove_closure(uint32_t at, PyObject* value) { return prove_root(at, StepKind::kCell, value); }

Trust ShortcutBuilder::prove_instance_dict(uint32_t at, PyObject* value) {
    bool contents;
    return pin_instance_dict(op(at).reg, &contents) == value ? Trust::kPlaced : Trust::kNew;
}

Trust ShortcutBuilder::prove_type(uint32_t at, PyObject* value) {
    uint32_t reg = op(at).reg;
    pin_type(reg);
    return as_object(Py_TYPE(registers_[reg])) == value ? Trust::kPlaced : Trust::kNew;
}

Trust ShortcutBuilder::prove_contents(uint32_t at, PyObject* value) {
    uint32_t reg = op(at).reg;
    pin_type(reg);
    if (PyCell_GET(registers_[reg]) != value) return Trust::kNew;
    add(StepKind::kContents, 0, registers_[reg], value, at);
    return Trust::kPlaced;
}

Trust ShortcutBuilder::prove_load(uint32_t at) {
    const Op& load_op = op(at);
    PyObject* value = registers_[made_->targets_[at]];
    if ((reads_register(load_op.code) && !is_proven(load_op.reg)) || unsteady_.loads.count(at)) return Trust::kNew;
    switch (load_op.code) {
#define X(name, reads, operand, proof) \
    case OpCode::name:                 \
        return proof(at, value);
        STATOR_LOADS(X)
#undef X
        default:
            return Trust::kNew;
    }
}

bool ShortcutBuilder::prove_type_is(uint32_t at) {
    pin_type(op(at).reg);
    return true;
}

bool ShortcutBuilder::prove_value(uint32_t at) {
    const Op& check = op(at);
    if (!is_plain(check.object)) return false;
    return trust_[check.reg] == Trust::kKept || recheck(at);
}

bool ShortcutBuilder::prove_length(uint32_t at) {
    uint32_t reg = op(at).reg;
    PyObject* object = registers_[reg];
    if (PyTuple_Check(object) && trust_[reg] == Trust::kKept) return true;
    if (!PyDict_Check(object) && !PyList_Check(object) && !PyTuple_Check(object) && !PyAnySet_Check(object)) {
        return false;
    }
    pin_type(reg);
    return (PyDict_Check(object) && pin_version(reg)) || recheck(at);
}

bool ShortcutBuilder::prove_keys(uint32_t at) {
    const Op& check = op(at);
    pin_type(check.reg);
    return is_plain(check.object) && !PyODict_Check(registers_[check.reg]) && pin_version(check.reg);
}

bool ShortcutBuilder::prove_presence(uint32_t at) {
    const Op& check = op(at);
    PyObject* dict = registers_[check.reg];
    pin_type(check.reg);
    if (!is_plain(check.object) || !PyUnicode_CheckExact(check.object) || !has_plain_keys(dict)) return false;
    return pin_version(check.reg) || by_presence(at, dict, check.code == OpCode::HAS_KEY);
}

bool ShortcutBuilder::prove_no_attribute(uint32_t at) {
    uint32_t reg = op(at).reg;
    if (PyType_Check(registers_[reg])) {
        pin_type(reg);
        return pin_type_version(reinterpret_cast<PyTypeObject*>(registers_[reg]), op(at).object);
    }
    bool contents;
    PyObject* dict = pin_instance_dict(reg, &contents);
    if (!dict) return true;
    return has_plain_keys(dict) && (contents || by_presence(at, dict, false));
}

// A function's code can be replaced, the one it has now is owned by the check; and so can what runs it.
bool ShortcutBuilder::prove_code(uint32_t at) {
    uint32_t reg = op(at).reg;
    if (!PyFunction_Check(registers_[reg])) return false;
    pin_type(reg);
    auto* function = reinterpret_cast<PyFunctionObject*>(registers_[reg]);
    add(StepKind::kPlace, 0, &function->func_code, function->func_code);
    add(StepKind::kPlace, 0, &function->vectorcall, reinterpret_cast<void*>(function->vectorcall));
    return true;
}

uint32_t ShortcutBuilder::tensor_index(const TensorCheck* check) {
    auto& known = made_->tensors_;
    for (size_t i = known.size(); i-- > 0;) {
        if (known[i] == check) return static_cast<uint32_t>(i);
        if (known.size() - i > 16) break;  // equal specs mostly come close to each other
    }
    known.push_back(check);
    return static_cast<uint32_t>(known.size() - 1);
}

bool ShortcutBuilder::prove_tensor(uint32_t at) {
    PyObject* object = registers_[op(at).reg];
    const auto* check = static_cast<const TensorCheck*>(op(at).extra.get());
    if (!check || read_tensor_verdict(*check, object) != Verdict::kYes) return false;
    const void *impl, *autograd;
    tensor_parts(object, &impl, &autograd);
    add(StepKind::kTensor, tensor_index(check), object, impl, reinterpret_cast<uint64_t>(autograd));
    return true;
}

// The tuple is made anew whenever the bases of the class or of one of its bases are assigned; the check owns it.
bool ShortcutBuilder::prove_mro(uint32_t at) {
    uint32_t reg = op(at).reg;
    if (trust_[reg] != Trust::kKept || !PyType_Check(registers_[reg])) return false;
    auto* cls = reinterpret_cast<PyTypeObject*>(registers_[reg]);
    add(StepKind::kPlace, 0, &cls->tp_mro, cls->tp_mro);
    return true;
}

bool ShortcutBuilder::prove_class_attribute(uint32_t at) {
    PyObject* instruction = PyList_GET_ITEM(program_->instructions, static_cast<Py_ssize_t>(at));
    PyObject* cls = PyTuple_GET_ITEM(PyTuple_GET_ITEM(instruction, 3), 0);
    return pin_type_version(reinterpret_cast<PyTypeObject*>(cls), op(at).object);
}

bool ShortcutBuilder::prove_unrecorded(uint32_t at) {
    uint32_t reg = op(at).reg;
    if (!is_unrecorded(registers_[reg])) return false;  // only Python can tell
    pin_type(reg);
    add(StepKind::kUnrecorded, 0, registers_[reg]);
    return true;
}

// The check is shown to hold by steps, and holds now: the walk may have run code that changed things since.
bool ShortcutBuilder::prove_check(uint32_t at) { return find_proof(at) && check(op(at), registers_); }

bool ShortcutBuilder::find_proof(uint32_t at) {
    const Op& check = op(at);
    if (reads_register(check.code) && !is_proven(check.reg)) return false;
    if (const auto* more = more_registers(check)) {
        for (uint32_t reg : *more) {
            if (!is_proven(reg)) return false;
        }
    }
    switch (check.code) {
#define X(name, reads, operand, proof) \
    case OpCode::name:                 \
        return proof(at);
        STATOR_CHECKS(X)
#undef X
        default:
            return false;
    }
}

// The operation is run in each call: early, if it needs nothing that the steps prove.
void ShortcutBuilder::leave_to_run(uint32_t at, bool is_load, uint32_t reg) {
    std::vector<uint32_t> inputs;
    if (reads_register(op(at).code)) inputs.push_back(op(at).reg);
    if (const auto* more = more_registers(op(at))) inputs.insert(inputs.end(), more->begin(), more->end());
    bool late = false;
    for (uint32_t input : inputs) {
        if (is_proven(input)) needed_.insert(input);
        late = late || is_proven(input) || is_late_[input];
    }
    (late ? made_->late_ : made_->early_).push_back(at);
    if (is_load) is_late_[reg] = late;
}

std::unique_ptr<Shortcut> ShortcutBuilder::build() {
    uint32_t reg = 0;
    auto count = static_cast<uint32_t>(program_->ops->size());
    made_->targets_.resize(count);
    for (uint32_t at = 0; at < count; at++) {
        if (op(at).code < kFirstCheck) {
            is_late_.push_back(false);
            made_->targets_[at] = reg;
            trust_.push_back(prove_load(at));
            if (!is_proven(reg)) leave_to_run(at, true, reg);
            proven_ += is_proven(reg);
            made_->registers_.push_back(is_proven(reg) ? registers_[reg] : nullptr);
            reg++;
        } else if (prove_check(at)) {
            proven_++;
        } else {
            leave_to_run(at, false, 0);
        }
    }
    if (proven_ < count / 2) return nullptr;
    for (const Output& output : *program_->outputs) {
        for (uint32_t input : output.registers) {
            if (is_proven(input)) needed_.insert(input);
        }
    }
    made_->needed_.assign(needed_.begin(), needed_.end());
    return std::move(made_);
}

std::unique_ptr<Shortcut> build_shortcut(const Program* program, const Call& call, PyObject* const* registers,
                                         const std::unordered_set<uint32_t>& steady_roots,
                                         const Unsteady& unsteady) {
    return ShortcutBuilder(program, call, registers, steady_roots, unsteady).build();
}

}  // namespace stator
