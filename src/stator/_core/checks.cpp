#include "checks.h"

#include "equality.h"
#include "loads.h"
#include "memory.h"
#include "probe.h"
#include "relation.h"
#include "state.h"
#include "tensors.h"
#include "versions.h"

namespace stator {

unsigned int type_version(PyTypeObject* type) {
    if (kTypeVersionHasFlag && !PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG)) return 0;
    return type->tp_version_tag;
}

namespace {

// The class, and the version its attributes had when the check last passed.
struct TypeVersion : OpExtra {
    PyTypeObject* type = nullptr;
    unsigned int version = 0;
};

const std::vector<uint32_t>& registers_of(const Op& op) {
    return static_cast<const RegisterList*>(op.extra.get())->registers;
}

bool is_true(PyObject* result) {  // steals
    Ref held = Ref::steal(result);
    int answer = held ? PyObject_IsTrue(held.get()) : -1;
    if (answer < 0) forget_exception();
    return answer > 0;
}

Py_ssize_t length(PyObject* object) {
    if (PyList_Check(object)) return PyList_GET_SIZE(object);
    if (PyTuple_Check(object)) return PyTuple_GET_SIZE(object);
    if (PyDict_Check(object)) return reinterpret_cast<PyDictObject*>(object)->ma_used;
    if (PyAnySet_Check(object)) return PySet_GET_SIZE(object);
    auto* deque = reinterpret_cast<PyTypeObject*>(state.deque_type);
    Py_ssize_t count = PyType_IsSubtype(Py_TYPE(object), deque) ? deque->tp_as_sequence->sq_length(object)
                                                               : PyObject_Size(object);
    if (count < 0) forget_exception();
    return count;
}

bool same_key(PyObject* key, PyObject* expected) { return key == expected || same_value(key, expected); }

bool ordered_keys_are(PyObject* dict, PyObject* expected) {
    Ref iterator = Ref::steal(PyODict_Type.tp_iter(dict));
    if (!iterator) {
        forget_exception();
        return false;
    }
    Py_ssize_t i = 0, count = PyTuple_GET_SIZE(expected);
    while (PyObject* next = PyIter_Next(iterator.get())) {
        Ref key = Ref::steal(next);
        if (i >= count || !same_key(next, PyTuple_GET_ITEM(expected, i++))) return false;
    }
    forget_exception();
    return i == count && !PyErr_Occurred();
}

bool keys_are(PyObject* dict, PyObject* expected) {
    if (!PyDict_Check(dict)) return false;
    Py_ssize_t count = PyTuple_GET_SIZE(expected);
    if (reinterpret_cast<PyDictObject*>(dict)->ma_used != count) return false;
    if (PyODict_Check(dict)) return ordered_keys_are(dict, expected);
    Py_ssize_t position = 0, i = 0;
    PyObject* next;
    while (PyDict_Next(dict, &position, &next, nullptr)) {
        Ref key = Ref::borrow(next);  // comparing may run Python code
        if (i >= count || !same_key(next, PyTuple_GET_ITEM(expected, i++))) return false;
    }
    return i == count;
}

// Whether the dict has the key; neither, if it is no dict or a key's own code raised.
bool contains(PyObject* dict, const Op& op, bool expected) {
    if (!PyDict_Check(dict)) return false;
    PyObject* found = _PyDict_GetItem_KnownHash(dict, op.object, op.hash);
    if (!found && PyErr_Occurred()) {
        forget_exception();
        return false;
    }
    return (found != nullptr) == expected;
}

bool lacks_attribute(PyObject* object, const Op& op) {
    Ref dict = PyType_Check(object) ? Ref::steal(class_dict(object)) : Ref::borrow(instance_dict(object));
    return !dict || contains(dict.get(), op, false);
}

// A version tag is never given twice, so the same one means: nothing in the whole MRO has changed.
bool type_attribute_is(const Op& op) {
    auto* memo = static_cast<TypeVersion*>(op.extra.get());
    if (memo->version != 0 && memo->version == type_version(memo->type)) return true;
    if (_PyType_Lookup(memo->type, op.object) != op.second) return false;
    memo->version = type_version(memo->type);
    return true;
}

bool is_distinct(const Op& op, PyObject* const* registers) {
    PyObject* object = registers[op.reg];
    for (uint32_t other : registers_of(op)) {
        if (registers[other] == object) return false;
    }
    return true;
}

bool predicate(const Op& op, PyObject* const* registers) {
    const std::vector<uint32_t>& from = registers_of(op);
    PyObject* few[8];
    std::vector<PyObject*> many;
    PyObject** args = few;
    if (from.size() > 8) {
        many.resize(from.size());
        args = many.data();
    }
    for (size_t i = 0; i < from.size(); i++) args[i] = registers[from[i]];
    return is_true(PyObject_Vectorcall(op.object, args, from.size(), nullptr));
}

// What Python says where the core cannot tell.
bool is_yes(Verdict verdict, const Op& op, PyObject* const* registers) {
    return verdict == Verdict::kUnknown ? predicate(op, registers) : verdict == Verdict::kYes;
}

}  // namespace

RegisterList::RegisterList(PyObject* given, Py_ssize_t first) {
    for (Py_ssize_t i = first; i < PyTuple_GET_SIZE(given); i++) {
        registers.push_back(static_cast<uint32_t>(PyLong_AsUnsignedLong(PyTuple_GET_ITEM(given, i))));
    }
}

const std::vector<uint32_t>* more_registers(const Op& op) {
    Reads reads = row_of(op.code).reads;
    return reads == Reads::kNone || reads == Reads::kOne ? nullptr : &registers_of(op);
}

std::shared_ptr<OpExtra> make_extra(OpCode code, PyObject* registers, PyObject* object) {
    switch (code) {
        case OpCode::GLOBAL:
            return std::make_shared<GlobalMemo>();
        case OpCode::APART:
            return make_apart_check(registers, object);
        case OpCode::RELATION:
            return make_relation(registers, object);
        case OpCode::TENSOR:
            return make_tensor_check(object);
        case OpCode::TYPE_ATTR_IS: {
            auto memo = std::make_shared<TypeVersion>();
            memo->type = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(object, 0));
            return memo;
        }
        default:
            break;
    }
    Reads reads = row_of(code).reads;
    if (reads == Reads::kNone || reads == Reads::kOne) return nullptr;
    return std::make_shared<RegisterList>(registers, reads == Reads::kList ? 0 : 1);
}

// op.object: the code; op.second: the globals, if they matter.
bool code_is(const Op& op, PyObject* function) {
    if (!PyFunction_Check(function) || PyFunction_GET_CODE(function) != op.object) return false;
    return (!op.second || PyFunction_GET_GLOBALS(function) == op.second) && runs_its_code(function);
}

// A reference to what has ended refers to None.
bool is_referent(PyObject* reference, PyObject* object) {
    return reinterpret_cast<PyWeakReference*>(reference)->wr_object == object && object != Py_None;
}

// Without a default: the compiler names a check that is forgotten.
bool check(const Op& op, PyObject* const* registers) {
    switch (op.code) {
        case OpCode::TYPE_IS:
            return as_object(Py_TYPE(registers[op.reg])) == op.object;
        case OpCode::ID_IS:
            return registers[op.reg] == op.object;
        case OpCode::WEAK_ID_IS:
            return is_referent(op.object, registers[op.reg]);
        case OpCode::EQUALS:
            return same_value(registers[op.reg], op.object);
        case OpCode::LENGTH:
            return length(registers[op.reg]) == op.index;
        case OpCode::KEYS_ARE:
            return keys_are(registers[op.reg], op.object);
        case OpCode::HAS_KEY:
            return contains(registers[op.reg], op, true);
        case OpCode::NO_KEY:
            return contains(registers[op.reg], op, false);
        case OpCode::NO_ATTR:
            return lacks_attribute(registers[op.reg], op);
        case OpCode::TYPE_ATTR_IS:
            return type_attribute_is(op);
        case OpCode::MRO_IS: {
            PyObject* cls = registers[op.reg];
            return PyType_Check(cls) && reinterpret_cast<PyTypeObject*>(cls)->tp_mro == op.object;
        }
        case OpCode::CODE_IS:
            return code_is(op, registers[op.reg]);
        case OpCode::SAME:
            return registers[op.reg] == registers[registers_of(op)[0]];
        case OpCode::DISTINCT:
            return is_distinct(op, registers);
        case OpCode::TENSOR:
            return check_tensor(op, registers[op.reg]);
        case OpCode::PREDICATE:
            return predicate(op, registers);
        case OpCode::RELATION:
            return is_yes(relation_verdict(op, registers), op, registers);
        case OpCode::APART:
            return is_yes(apart_verdict(op, registers), op, registers);
        case OpCode::UNRECORDED:
            return is_unrecorded(registers[op.reg]) || is_true(PyObject_CallOneArg(op.object, registers[op.reg]));
        case OpCode::GLOBAL_STATE:
            if (is_probe(op.object)) return probe_holds(reinterpret_cast<const Probe*>(op.object));
            return is_true(PyObject_CallNoArgs(op.object));
#define X(name, reads, operand, proof) case OpCode::name:
            STATOR_LOADS(X)
#undef X
        case OpCode::COUNT_:
            break;
    }
    __builtin_unreachable();  // run_program() tells loads and checks apart
}

}  // namespace stator
