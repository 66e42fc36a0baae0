// The operations of a guard program.  A load pushes one register; a check reads registers and answers yes or no.
#pragma once

// X(name): the names Python uses, in the order of the numbers.
#define STATOR_LOADS(X) \
    X(LOCAL)            \
    X(FUNCTION)         \
    X(CELL)             \
    X(GLOBAL)           \
    X(CONST)            \
    X(ATTR)             \
    X(GETATTR)          \
    X(INSTANCE_DICT)    \
    X(TYPE)             \
    X(TYPE_ATTR)        \
    X(ITEM)             \
    X(DICT_ITEM)        \
    X(DICT_KEY)         \
    X(CELL_CONTENTS)    \
    X(WEAKREF)          \
    X(CALL)

#define STATOR_CHECKS(X) \
    X(TYPE_IS)           \
    X(ID_IS)             \
    X(EQUALS)            \
    X(LENGTH)            \
    X(KEYS_ARE)          \
    X(HAS_KEY)           \
    X(NO_KEY)            \
    X(NO_ATTR)           \
    X(TYPE_ATTR_IS)      \
    X(MRO_IS)            \
    X(CODE_IS)           \
    X(SAME)              \
    X(DISTINCT)          \
    X(TENSOR)            \
    X(PREDICATE)         \
    X(APART)             \
    X(UNRECORDED)        \
    X(GLOBAL_STATE)

namespace stator {

enum class OpCode : unsigned char {
#define X(name) name,
    STATOR_LOADS(X) STATOR_CHECKS(X)
#undef X
    COUNT_
};

constexpr OpCode kFirstCheck = OpCode::TYPE_IS;

}  // namespace stator
