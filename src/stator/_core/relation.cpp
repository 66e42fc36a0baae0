#include "relation.h"

#include <algorithm>
#include <string>

#include "loads.h"

namespace stator {

namespace {

constexpr size_t kDepth = 16;

struct Relation : RegisterList {
    using RegisterList::RegisterList;
    std::string steps;  // empty: it is left to Python
    std::vector<int64_t> operands;
};

bool takes_operand(char step) { return step == 'n' || step == 'c'; }

// Do the steps leave one number, and stay within what there is?
bool is_sound(const Relation& relation) {
    size_t depth = 0, used = 0, count = relation.registers.size();
    for (char step : relation.steps) {
        if (!takes_operand(step)) {
            if (depth-- < 2) return false;
            continue;
        }
        if (depth++ == kDepth || used == relation.operands.size()) return false;
        int64_t operand = relation.operands[used++];
        if (step == 'n' && (operand < 0 || static_cast<size_t>(operand) >= count)) return false;
    }
    return depth == 1;
}

bool parse(PyObject* expression, Relation& relation) {
    Ref steps = Ref::steal(PyObject_GetAttrString(expression, "steps"));
    Ref operands = Ref::steal(PyObject_GetAttrString(expression, "operands"));
    const char* text = steps && operands && PyTuple_Check(operands.get()) ? PyUnicode_AsUTF8(steps.get()) : nullptr;
    if (!text) return false;
    relation.steps = text;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(operands.get()); i++) {
        relation.operands.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(operands.get(), i)));
    }
    return !PyErr_Occurred() && is_sound(relation);
}

bool read_int(PyObject* object, int64_t* number) {
    int overflow = 0;
    if (PyLong_CheckExact(object)) *number = PyLong_AsLongLongAndOverflow(object, &overflow);
    return PyLong_CheckExact(object) && !overflow;
}

// One step on two numbers; false if the result cannot be told.
bool combine(char step, int64_t a, int64_t b, int64_t* result) {
    switch (step) {
        case '+':
            return !__builtin_add_overflow(a, b, result);
        case '-':
            return !__builtin_sub_overflow(a, b, result);
        case '*':
            return !__builtin_mul_overflow(a, b, result);
        case '/':
        case '%': {  // towards minus infinity
            if (b == 0 || b == -1) return false;
            bool is_below = a % b != 0 && (a < 0) != (b < 0);
            *result = step == '/' ? a / b - is_below : a % b + (is_below ? b : 0);
            return true;
        }
        case '=':
            *result = a == b;
            return true;
        case '<':
            *result = a < b;
            return true;
        case 'm':
            *result = std::min(a, b);
            return true;
        case 'M':
            *result = std::max(a, b);
            return true;
    }
    return false;
}

}  // namespace

std::shared_ptr<OpExtra> make_relation(PyObject* registers, PyObject* expression) {
    auto relation = std::make_shared<Relation>(registers);
    if (!parse(expression, *relation)) relation->steps.clear();
    forget_exception();
    return relation;
}

Verdict relation_verdict(const Op& op, PyObject* const* registers) {
    const auto& relation = *static_cast<const Relation*>(op.extra.get());
    int64_t stack[kDepth];
    const int64_t* operand = relation.operands.data();
    size_t depth = 0;
    for (char step : relation.steps) {
        if (step == 'c') {
            stack[depth++] = *operand++;
        } else if (step == 'n') {
            if (!read_int(registers[relation.registers[static_cast<size_t>(*operand++)]], &stack[depth++])) {
                return Verdict::kUnknown;
            }
        } else {
            depth--;
            if (!combine(step, stack[depth - 1], stack[depth], &stack[depth - 1])) return Verdict::kUnknown;
        }
    }
    if (depth != 1) return Verdict::kUnknown;
    return stack[0] ? Verdict::kYes : Verdict::kNo;
}

}  // namespace stator
