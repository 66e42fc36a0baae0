#include "loads.h"

#include <structmember.h>

#include "checks.h"
#include "dicts.h"
#include "tensors.h"
#include "versions.h"

namespace stator {

void forget_exception() {
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear();
}

PyObject* instance_dict(PyObject* object) {
    if (PyType_Check(object)) return nullptr;
    PyObject** place = _PyObject_GetDictPtr(object);
    PyObject* dict = place ? *place : nullptr;
    return dict && PyDict_Check(dict) ? dict : nullptr;
}

PyObject* dict_item(PyObject* dict, PyObject* key, Py_hash_t hash) {
    PyObject* found = _PyDict_GetItem_KnownHash(dict, key, hash);
    if (!found) forget_exception();
    return found;
}

namespace {

PyObject* or_forget(PyObject* result) {
    if (!result) forget_exception();
    return result;
}

// A class's own attributes.
PyObject* class_item(PyObject* cls, PyObject* name, Py_hash_t hash) {
    Ref dict = Ref::steal(class_dict(cls));
    return dict ? Py_XNewRef(dict_item(dict.get(), name, hash)) : nullptr;
}

PyObject* own_attribute(PyObject* object, PyObject* name, Py_hash_t hash) {
    if (PyType_Check(object)) return class_item(object, name, hash);
    PyObject* dict = instance_dict(object);
    return dict ? Py_XNewRef(dict_item(dict, name, hash)) : nullptr;
}

// The instance dict as `__dict__` shows it: made now if the object has a place for one and none yet.
PyObject* whole_dict(PyObject* object) {
    if (PyType_Check(object)) return nullptr;
    if (PyObject* dict = instance_dict(object)) return Py_NewRef(dict);
    if (Py_TYPE(object)->tp_dictoffset == 0) return nullptr;
    return or_forget(PyObject_GenericGetDict(object, nullptr));
}

PyObject* closure_contents(PyObject* function, Py_ssize_t index) {
    PyObject* closure = PyFunction_Check(function) ? PyFunction_GET_CLOSURE(function) : nullptr;
    if (!closure || index >= PyTuple_GET_SIZE(closure)) return nullptr;
    return Py_XNewRef(PyCell_GET(PyTuple_GET_ITEM(closure, index)));
}

PyObject* item(PyObject* sequence, Py_ssize_t index) {
    if (PyTuple_Check(sequence)) {
        return index < PyTuple_GET_SIZE(sequence) ? Py_NewRef(PyTuple_GET_ITEM(sequence, index)) : nullptr;
    }
    if (!PyList_Check(sequence)) return nullptr;
    return index < PyList_GET_SIZE(sequence) ? Py_NewRef(PyList_GET_ITEM(sequence, index)) : nullptr;
}

// An OrderedDict keeps an order of its own.
PyObject* ordered_key(PyObject* dict, Py_ssize_t index) {
    Ref iterator = Ref::steal(PyODict_Type.tp_iter(dict));
    while (iterator) {
        PyObject* key = PyIter_Next(iterator.get());
        if (!key || index-- == 0) {
            if (!key) forget_exception();
            return key;
        }
        Py_DECREF(key);
    }
    forget_exception();
    return nullptr;
}

PyObject* dict_key(PyObject* dict, Py_ssize_t index) {
    if (!PyDict_Check(dict)) return nullptr;
    if (PyODict_Check(dict)) return ordered_key(dict, index);
    Py_ssize_t position = 0;
    PyObject* key;
    while (PyDict_Next(dict, &position, &key, nullptr)) {
        if (index-- == 0) return Py_NewRef(key);
    }
    return nullptr;
}

// Those of a function's attributes that are its fields, though its type computes them.
PyObject** function_field(PyObject* object, PyObject* name) {
    auto* function = reinterpret_cast<PyFunctionObject*>(object);
    if (PyUnicode_CompareWithASCIIString(name, "__defaults__") == 0) return &function->func_defaults;
    if (PyUnicode_CompareWithASCIIString(name, "__kwdefaults__") == 0) return &function->func_kwdefaults;
    return nullptr;
}

}  // namespace

PyObject** member_place(PyObject* object, PyObject* name) {
    PyTypeObject* type = Py_TYPE(object);
    if (!PyUnicode_CheckExact(name) || type->tp_getattro != PyObject_GenericGetAttr) return nullptr;
    PyObject* found = _PyType_Lookup(type, name);
    if (!found) return nullptr;
    if (Py_IS_TYPE(found, &PyGetSetDescr_Type)) return PyFunction_Check(object) ? function_field(object, name) : nullptr;
    if (!Py_IS_TYPE(found, &PyMemberDescr_Type) || !PyObject_TypeCheck(object, PyDescr_TYPE(found))) return nullptr;
    const PyMemberDef* member = reinterpret_cast<PyMemberDescrObject*>(found)->d_member;
    bool holds_object = member->type == T_OBJECT || member->type == T_OBJECT_EX;
    if (!holds_object || (member->flags & ~READONLY)) return nullptr;
    return reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object) + member->offset);
}

namespace {

PyObject* load_global(const Op& op) {
    GlobalMemo* memo = global_memo(op);
    uint64_t version = dict_version(op.object);
    if (version && version == memo->version) return Py_NewRef(memo->value);
    memo->version = 0;
    memo->equal = false;
    PyObject* found = dict_item(op.object, op.second, op.hash);
    if (!found) return nullptr;
    // A key's own __eq__ may have changed the dict: what was found is that of a version only if that has stayed.
    if (version && dict_version(op.object) == version) {
        memo->version = version;
        memo->value = found;
    }
    return Py_NewRef(found);
}

PyObject* call_on(const Op& op, PyObject* const* registers) {
    const std::vector<uint32_t>& others = *more_registers(op);
    if (others.empty()) return PyObject_CallOneArg(op.object, registers[op.reg]);
    std::vector<PyObject*> args{registers[op.reg]};
    for (uint32_t other : others) args.push_back(registers[other]);
    return PyObject_Vectorcall(op.object, args.data(), args.size(), nullptr);
}

}  // namespace

// Without a default: the compiler names a load that is forgotten.
PyObject* load(const Op& op, const Call& call, PyObject* const* registers) {
    switch (op.code) {
        case OpCode::LOCAL:
            return op.index < call.count ? Py_XNewRef(call.slots[op.index]) : nullptr;
        case OpCode::FUNCTION:
            return Py_NewRef(call.function);
        case OpCode::CELL:
            return closure_contents(call.function, op.index);
        case OpCode::GLOBAL:
            return load_global(op);
        case OpCode::CONST:
            return Py_NewRef(op.object);
        case OpCode::ATTR:
            return own_attribute(registers[op.reg], op.object, op.hash);
        case OpCode::GETATTR:
            return or_forget(PyObject_GetAttr(registers[op.reg], op.object));
        case OpCode::INSTANCE_DICT:
            return whole_dict(registers[op.reg]);
        case OpCode::TYPE:
            return Py_NewRef(as_object(Py_TYPE(registers[op.reg])));
        case OpCode::TYPE_ATTR: {
            PyObject* cls = registers[op.reg];
            if (!PyType_Check(cls)) return nullptr;
            return Py_XNewRef(_PyType_Lookup(reinterpret_cast<PyTypeObject*>(cls), op.object));
        }
        case OpCode::ITEM:
            return item(registers[op.reg], op.index);
        case OpCode::DICT_ITEM: {
            PyObject* dict = registers[op.reg];
            return PyDict_Check(dict) ? Py_XNewRef(dict_item(dict, op.object, op.hash)) : nullptr;
        }
        case OpCode::DICT_KEY:
            return dict_key(registers[op.reg], op.index);
        case OpCode::CELL_CONTENTS: {
            PyObject* cell = registers[op.reg];
            return PyCell_Check(cell) ? Py_XNewRef(PyCell_GET(cell)) : nullptr;
        }
        case OpCode::SIZE:
        case OpCode::STRIDE:
        case OpCode::OFFSET:
            return or_forget(tensor_number(op, registers[op.reg]));
        case OpCode::WEAKREF:
            return PyWeakref_CheckRef(registers[op.reg]) ? weak_referent(registers[op.reg]) : nullptr;
        case OpCode::CALL:
            return or_forget(call_on(op, registers));
#define X(name, reads, operand, proof) case OpCode::name:
            STATOR_CHECKS(X)
#undef X
        case OpCode::COUNT_:
            break;
    }
    __builtin_unreachable();  // run_program() tells loads and checks apart
}

}  // namespace stator
