#include "chain.h"

#include <algorithm>

#include "equality.h"

namespace stator {

namespace {

PyObject* field(const Program* program, size_t at, Py_ssize_t index) {
    return PyTuple_GET_ITEM(PyList_GET_ITEM(program->instructions, static_cast<Py_ssize_t>(at)), index);
}

// Built-in functions and bound methods are made anew by each attribute access.
bool same_callable(PyObject* a, PyObject* b) {
    if (a == b) return true;
    if (Py_TYPE(a) != Py_TYPE(b) || !(PyCFunction_Check(a) || PyMethod_Check(a))) return false;
    return same_value(a, b);
}

bool same_elements(PyObject* a, PyObject* b) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); i++) {
        PyObject *left = PyTuple_GET_ITEM(a, i), *right = PyTuple_GET_ITEM(b, i);
        if (left != right && !(PyUnicode_CheckExact(left) && same_value(left, right))) return false;
    }
    return true;
}

bool same_operand(OpCode code, PyObject* a, PyObject* b) {
    switch (row_of(code).operand) {
        case Operand::kObject:
            return a == b;
        case Operand::kCallable:
            return same_callable(a, b);
        case Operand::kGlobal:
        case Operand::kTypeAttribute:
        case Operand::kCode:
            return a == b || same_elements(a, b);
        case Operand::kNothing:
        case Operand::kValue:
        case Operand::kName:
        case Operand::kKey:
        case Operand::kKeys:
            return same_value(a, b);
    }
    return false;
}

bool same_operation(const Program* a, const Program* b, size_t at) {
    if (PyList_GET_ITEM(a->instructions, static_cast<Py_ssize_t>(at)) ==
        PyList_GET_ITEM(b->instructions, static_cast<Py_ssize_t>(at))) {
        return true;
    }
    const Op &left = (*a->ops)[at], &right = (*b->ops)[at];
    return left.code == right.code && left.reg == right.reg && left.index == right.index &&
           same_value(field(a, at, 1), field(b, at, 1)) && same_operand(left.code, field(a, at, 3), field(b, at, 3));
}

}  // namespace

size_t common_prefix(const Program* a, const Program* b) {
    size_t count = std::min(a->ops->size(), b->ops->size());
    for (size_t at = 0; at < count; at++) {
        if (!same_operation(a, b, at)) return at;
    }
    return count;
}

Chain::~Chain() {
    for (Link& link : links_) Py_DECREF(link.entry);
}

void Chain::append(Entry* entry, size_t shared) {
    Link link{reinterpret_cast<Entry*>(Py_NewRef(as_object(entry))), shared, 0};
    for (size_t at = 0; at < shared; at++) link.registers += (*entry->program->ops)[at].code < kFirstCheck;
    links_.push_back(link);
}

ChainRef Chain::prepend(Entry* entry, const Chain* old) {
    auto* chain = new Chain;
    ChainRef kept(chain);
    chain->append(entry, 0);
    for (size_t i = 0; old && i < old->links_.size(); i++) {
        const Link& link = old->links_[i];
        // What a prologue has done, the guards checked before it have not seen.
        bool same_start = entry->prologue == link.entry->prologue;
        size_t first = same_start ? common_prefix(entry->program, link.entry->program) : 0;
        chain->append(link.entry, i ? link.shared : first);
    }
    return kept;
}

}  // namespace stator
