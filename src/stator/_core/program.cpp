#include "program.h"

#include <structmember.h>

#include <cstring>
#include <unordered_map>

#include "checks.h"
#include "equality.h"
#include "loads.h"
#include "shortcut.h"
#include "state.h"

namespace stator {

namespace {

// After a GLOBAL: is the next operation an EQUALS of what it has loaded, that passes as it has for this value before?
[[gnu::noinline]] bool passes_next(const Op* op, const Op* end, const Registers& registers) {
    GlobalMemo* memo = global_memo(*op);
    const Op* next = op + 1;
    if (!memo->version || next == end) return false;
    if (next->code != OpCode::EQUALS || next->reg + 1 != registers.filled() || !is_plain(next->object)) return false;
    return memo->equal = same_value(memo->value, next->object);
}

}  // namespace

Py_ssize_t run_program(const Program* program, const Call& call, Registers& registers, size_t start) {
    const Op *first = program->ops->data(), *end = first + program->ops->size();
    registers.reserve(program->ops->size());
    for (const Op* op = first + start; op < end; op++) {
        if (op->code < kFirstCheck) {
            PyObject* loaded = load(*op, call, registers.data());
            if (loaded) {
                registers.push(loaded);
                if (op->code != OpCode::GLOBAL) continue;
                if (global_memo(*op)->equal || passes_next(op, end, registers)) op++;
                continue;
            }
        } else if (check(*op, registers.data())) {
            continue;
        }
        return PyErr_Occurred() ? kRaised : op - first;
    }
    return kPassed;
}

namespace {

PyObject* make_output(const Output& output, PyObject* const* registers) {
    if (!output.is_block) return Py_NewRef(registers[output.registers[0]]);
    PyObject* block = PyTuple_New(static_cast<Py_ssize_t>(output.registers.size()));
    for (size_t i = 0; block && i < output.registers.size(); i++) {
        PyTuple_SET_ITEM(block, static_cast<Py_ssize_t>(i), Py_NewRef(registers[output.registers[i]]));
    }
    return block;
}

}  // namespace

bool OutputArray::take(const Program* program, PyObject* const* registers) {
    const std::vector<Output>& outputs = *program->outputs;
    if (outputs.size() > kInline) items_ = new PyObject*[outputs.size() + 1];
    for (const Output& output : outputs) {
        PyObject* item = make_output(output, registers);
        if (!item) return false;
        items_[1 + count_++] = item;
    }
    return true;
}

PyObject* OutputArray::as_tuple() const {
    PyObject* outputs = PyTuple_New(static_cast<Py_ssize_t>(count_));
    for (size_t i = 0; outputs && i < count_; i++) {
        PyTuple_SET_ITEM(outputs, static_cast<Py_ssize_t>(i), Py_NewRef(items_[1 + i]));
    }
    return outputs;
}

void OutputArray::clear() {
    while (count_) Py_DECREF(items_[count_--]);
}

OutputArray::~OutputArray() {
    clear();
    if (items_ != inline_) delete[] items_;
}

Ref slots_as_tuple(const Call& call) {
    Ref slots = Ref::steal(PyTuple_New(call.count));
    for (Py_ssize_t i = 0; slots && i < call.count; i++) {
        PyObject* value = call.slots[i] ? call.slots[i] : state.unbound;
        PyTuple_SET_ITEM(slots.get(), i, Py_NewRef(value));
    }
    return slots;
}

bool reference_agrees(Program* program, const Call& call, const OutputArray* outputs) {
    Ref slots = slots_as_tuple(call);
    Ref handed = outputs ? Ref::steal(outputs->as_tuple()) : Ref::borrow(Py_None);
    if (!slots || !handed) return false;
    Ref complaint = Ref::steal(PyObject_CallMethodObjArgs(as_object(program), state.reference_name, call.function,
                                                          slots.get(), handed.get(), nullptr));
    if (!complaint) return false;
    if (complaint.get() == Py_None) return true;
    PyErr_Format(PyExc_RuntimeError, "the guard program and its reference disagree: %S", complaint.get());
    return false;
}

namespace {

Py_ssize_t walk_program(Program* program, const Call& call, OutputArray& outputs) {
    Registers registers;
    Py_ssize_t outcome = run_program(program, call, registers, 0);
    if (outcome == kPassed && !outputs.take(program, registers.data())) outcome = kRaised;
    if (outcome == kPassed) program->revalidation->note_pass(program, call, registers.data());
    if (outcome == kRaised) {
        ExceptionKept kept;
        registers.truncate(0);
    }
    return outcome;
}

}  // namespace

Py_ssize_t pass_program(Program* program, const Call& call, OutputArray& outputs) {
    auto shortcut = Shortcut::Result::kMissed;
    if (program->revalidation->has_shortcut()) shortcut = program->revalidation->run(program, call, outputs);
    if (shortcut == Shortcut::Result::kRaised) return kRaised;
    Py_ssize_t outcome = kPassed;
    if (shortcut == Shortcut::Result::kMissed) outcome = walk_program(program, call, outputs);
    if (outcome == kRaised || !is_strict(program)) return outcome;
    return reference_agrees(program, call, outcome == kPassed ? &outputs : nullptr) ? outcome : kRaised;
}

Ref failure_text(Program* program, const Call& call) {
    Ref slots = slots_as_tuple(call);
    if (!slots) return Ref();
    return Ref::steal(PyObject_CallMethodObjArgs(as_object(program), state.failure_name, call.function, slots.get(),
                                                 nullptr));
}

namespace {

Program* as_program(PyObject* self) { return reinterpret_cast<Program*>(self); }

bool find_code(const char* name, OpCode* code) {
    for (int i = 0; i < static_cast<int>(OpCode::COUNT_); i++) {
        if (std::strcmp(name, kOperations[i].name) != 0) continue;
        *code = static_cast<OpCode>(i);
        return true;
    }
    PyErr_Format(PyExc_ValueError, "no such guard operation: %s", name);
    return false;
}

bool reads_so_many(OpCode code, Py_ssize_t count) {
    switch (row_of(code).reads) {
        case Reads::kNone:
            return count == 0;
        case Reads::kOne:
            return count == 1;
        case Reads::kTwo:
            return count == 2;
        case Reads::kMore:
            return count >= 1;
        case Reads::kList:
            return true;
    }
    return false;
}

bool check_registers(PyObject* registers, uint32_t filled) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(registers); i++) {
        unsigned long reg = PyLong_AsUnsignedLong(PyTuple_GET_ITEM(registers, i));
        if (reg == static_cast<unsigned long>(-1) && PyErr_Occurred()) return false;
        if (reg < filled) continue;
        PyErr_SetString(PyExc_ValueError, "a guard operation reads a register before it is loaded");
        return false;
    }
    return true;
}

bool is_pair(PyObject* object, Py_ssize_t size) { return PyTuple_CheckExact(object) && PyTuple_GET_SIZE(object) == size; }

// Sets the operands that come out of the instruction's object.
bool set_objects(Op& op, PyObject* object) {
    op.object = object;
    PyObject* hashed = nullptr;
    switch (row_of(op.code).operand) {
        case Operand::kGlobal:
            if (!is_pair(object, 2) || !PyDict_Check(PyTuple_GET_ITEM(object, 0))) break;
            op.object = PyTuple_GET_ITEM(object, 0);
            op.second = hashed = PyTuple_GET_ITEM(object, 1);
            break;
        case Operand::kTypeAttribute:
            if (!is_pair(object, 3) || !PyType_Check(PyTuple_GET_ITEM(object, 0))) break;
            op.object = PyTuple_GET_ITEM(object, 1);
            op.second = op.index ? nullptr : PyTuple_GET_ITEM(object, 2);
            return true;
        case Operand::kCode:
            if (!is_pair(object, 2)) break;
            op.object = PyTuple_GET_ITEM(object, 0);
            op.second = Py_IsNone(PyTuple_GET_ITEM(object, 1)) ? nullptr : PyTuple_GET_ITEM(object, 1);
            return true;
        case Operand::kKeys:
            if (!PyTuple_CheckExact(object)) break;
            return true;
        case Operand::kKey:
            hashed = object;
            break;
        case Operand::kNothing:
        case Operand::kObject:
        case Operand::kValue:
        case Operand::kName:
        case Operand::kCallable:
            return true;
    }
    if (!hashed) {
        PyErr_Format(PyExc_TypeError, "bad operand for %s", row_of(op.code).name);
        return false;
    }
    op.hash = PyObject_Hash(hashed);
    return op.hash != -1;
}

// Operations on one tensor spec share what they know of it: what one has learnt serves all.
using SharedSpecs = std::unordered_map<PyObject*, std::shared_ptr<OpExtra>>;

std::shared_ptr<OpExtra> extra_for(OpCode code, PyObject* registers, PyObject* object, SharedSpecs& specs) {
    if (code != OpCode::TENSOR) return make_extra(code, registers, object);
    auto [place, is_new] = specs.try_emplace(object);
    if (is_new) place->second = make_extra(code, registers, object);
    return place->second;
}

bool parse_instruction(PyObject* instruction, uint32_t* filled, Op* op, SharedSpecs& specs) {
    const char* name;
    PyObject *registers, *object;
    Py_ssize_t index;
    if (!PyTuple_Check(instruction)) {
        PyErr_SetString(PyExc_TypeError, "a guard instruction is a tuple (name, registers, index, object)");
        return false;
    }
    if (!PyArg_ParseTuple(instruction, "sO!nO", &name, &PyTuple_Type, &registers, &index, &object)) return false;
    if (!find_code(name, &op->code) || !check_registers(registers, *filled)) return false;
    if (!reads_so_many(op->code, PyTuple_GET_SIZE(registers))) {
        PyErr_Format(PyExc_ValueError, "%s reads another number of registers", name);
        return false;
    }
    if (PyTuple_GET_SIZE(registers)) {
        op->reg = static_cast<uint32_t>(PyLong_AsUnsignedLong(PyTuple_GET_ITEM(registers, 0)));
    }
    if (index < 0) {
        PyErr_SetString(PyExc_ValueError, "a guard instruction's index counts from the front");
        return false;
    }
    op->index = index;
    if (!set_objects(*op, object)) return false;
    op->extra = extra_for(op->code, registers, object, specs);
    if (op->code < kFirstCheck) ++*filled;
    return !PyErr_Occurred();
}

bool parse_output(PyObject* item, uint32_t filled, Output* output) {
    output->is_block = PyTuple_Check(item);
    Ref registers = output->is_block ? Ref::borrow(item) : Ref::steal(PyTuple_Pack(1, item));
    if (!registers || !check_registers(registers.get(), filled)) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(registers.get()); i++) {
        output->registers.push_back(
            static_cast<uint32_t>(PyLong_AsUnsignedLong(PyTuple_GET_ITEM(registers.get(), i))));
    }
    return true;
}

bool fill(Program* self, PyObject* outputs) {
    uint32_t filled = 0;
    SharedSpecs specs;
    Py_ssize_t count = PyList_GET_SIZE(self->instructions);
    self->ops->resize(static_cast<size_t>(count));
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject* instruction = PyList_GET_ITEM(self->instructions, i);
        if (!parse_instruction(instruction, &filled, &(*self->ops)[static_cast<size_t>(i)], specs)) return false;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(outputs); i++) {
        if (!parse_output(PyList_GET_ITEM(outputs, i), filled, &self->outputs->emplace_back())) return false;
    }
    return true;
}

PyObject* program_new(PyTypeObject* type, PyObject* args, PyObject*) {
    PyObject *instructions, *outputs;
    if (!PyArg_ParseTuple(args, "OO:GuardProgram", &instructions, &outputs)) return nullptr;
    Ref own = Ref::steal(PySequence_List(instructions)), out = Ref::steal(PySequence_List(outputs));
    if (!own || !out) return nullptr;
    Ref made = Ref::steal(type->tp_alloc(type, 0));
    if (!made) return nullptr;
    Program* self = as_program(made.get());
    self->instructions = own.release();
    self->ops = new std::vector<Op>;
    self->outputs = new std::vector<Output>;
    self->revalidation = new Revalidation;
    return fill(self, out.get()) ? made.release() : nullptr;
}

int program_traverse(PyObject* object, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(as_program(object)->instructions);
    Py_VISIT(as_program(object)->dict);
    return as_program(object)->revalidation ? as_program(object)->revalidation->traverse(visit, arg) : 0;
}

// The operations borrow from the instructions: they go first.
int program_clear(PyObject* object) {
    Program* self = as_program(object);
    delete std::exchange(self->revalidation, nullptr);
    if (self->ops) self->ops->clear();
    if (self->outputs) self->outputs->clear();
    Py_CLEAR(self->instructions);
    Py_CLEAR(self->dict);
    return 0;
}

void program_dealloc(PyObject* object) {
    Program* self = as_program(object);
    PyTypeObject* type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    if (self->weakrefs) PyObject_ClearWeakRefs(object);
    program_clear(object);
    delete self->ops;
    delete self->outputs;
    type->tp_free(object);
    Py_DECREF(type);
}

// Fills a Call from (func, args) given as Python objects; both are borrowed from `args`.
bool parse_call(PyObject* args, Call* call) {
    PyObject *function, *slots;
    if (!PyArg_ParseTuple(args, "OO!", &function, &PyTuple_Type, &slots)) return false;
    call->function = function;
    call->slots = &PyTuple_GET_ITEM(slots, 0);
    call->count = PyTuple_GET_SIZE(slots);
    return true;
}

PyObject* program_run(PyObject* object, PyObject* args) {
    Call call;
    if (!parse_call(args, &call)) return nullptr;
    Program* self = as_program(object);
    OutputArray outputs;
    Py_ssize_t outcome = pass_program(self, call, outputs);
    if (outcome == kRaised) return nullptr;
    return outcome == kPassed ? outputs.as_tuple() : PyLong_FromSsize_t(outcome);
}

PyObject* program_times(PyObject* object, PyObject* args) {
    Call call;
    return parse_call(args, &call) ? time_operations(as_program(object), call) : nullptr;
}

PyObject* program_revalidation(PyObject* object, void*) {
    const Revalidation* known = as_program(object)->revalidation;
    return Py_BuildValue("nKK", static_cast<Py_ssize_t>(known->steps()), known->hits, known->builds);
}

PyGetSetDef program_getset[] = {
    {"revalidation", program_revalidation, nullptr,
     "(steps of the shortcut held, 0 if none; how often one passed; how many were made)", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMethodDef program_methods[] = {
    {"run", program_run, METH_VARARGS,
     "run(func, args) -> the outputs as a tuple, or the index of the instruction that failed"},
    {"times", program_times, METH_VARARGS,
     "times(func, args) -> the nanoseconds that each instruction takes, or None if one fails"},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef program_members[] = {
    {"instructions", T_OBJECT, offsetof(Program, instructions), READONLY, "the instructions it was made from"},
    {"strict", T_BOOL, offsetof(Program, strict), 0, "each decision is re-checked with the reference program"},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Program, weakrefs), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(Program, dict), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot program_slots[] = {
    {Py_tp_doc, const_cast<char*>("GuardProgram(instructions, outputs)\n--\n\nA flat list of loads and checks.")},
    {Py_tp_new, reinterpret_cast<void*>(program_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(program_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(program_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(program_clear)},
    {Py_tp_methods, program_methods},
    {Py_tp_members, program_members},
    {Py_tp_getset, program_getset},
    {0, nullptr},
};

}  // namespace

PyType_Spec program_spec = {"stator._core.GuardProgram", sizeof(Program), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, program_slots};

}  // namespace stator
