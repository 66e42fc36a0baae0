// The operations of a guard program, a row each.  A load pushes one register; a check reads registers and answers yes
// or no.  Python sees the rows as `_core.OPERATIONS`; the sources and guards there name theirs.
#pragma once

namespace stator {

// Which registers an operation reads.
enum class Reads : unsigned char {
    kNone,
    kOne,
    kTwo,
    kMore,  // one, and others
    kList,  // any number: there is no first one
};

// What the object of an instruction is.
enum class Operand : unsigned char {
    kNothing,
    kObject,    // this very object
    kValue,     // an object like it
    kName,      // a name
    kKey,       // a key, which is hashed once
    kKeys,      // a tuple of keys
    kCallable,  // what is called
    kGlobal,    // (dict, name)
    kTypeAttribute,  // (class, name, object)
    kCode,      // (code, globals or None)
};

// X(name, reads, operand, proof)
// The proof is the method of ShortcutBuilder (shortcut_build.cpp) that writes down what a later call is to find
// unchanged for the load to give the same object, or for the check to pass again; `run_again` where nothing is enough.
#define STATOR_LOADS(X)                                         \
    X(LOCAL, kNone, kNothing, prove_argument)                   \
    X(FUNCTION, kNone, kNothing, prove_function)                \
    X(CELL, kNone, kNothing, prove_closure)                     \
    X(GLOBAL, kNone, kGlobal, prove_global)                     \
    X(CONST, kNone, kObject, prove_constant)                    \
    X(ATTR, kOne, kKey, prove_attribute)                        \
    X(GETATTR, kOne, kName, prove_member)                       \
    X(INSTANCE_DICT, kOne, kNothing, prove_instance_dict)       \
    X(TYPE, kOne, kNothing, prove_type)                         \
    X(TYPE_ATTR, kOne, kName, prove_type_attribute)             \
    X(ITEM, kOne, kNothing, prove_item)                         \
    X(DICT_ITEM, kOne, kKey, prove_dict_item)                   \
    X(DICT_KEY, kOne, kNothing, prove_dict_key)                 \
    X(CELL_CONTENTS, kOne, kNothing, prove_contents)            \
    X(SIZE, kOne, kNothing, load_again)                         \
    X(STRIDE, kOne, kNothing, load_again)                       \
    X(OFFSET, kOne, kNothing, load_again)                       \
    X(WEAKREF, kOne, kNothing, load_again)                      \
    X(CALL, kMore, kCallable, load_again)

#define STATOR_CHECKS(X)                                        \
    X(TYPE_IS, kOne, kObject, prove_type_is)                    \
    X(ID_IS, kOne, kObject, prove_address)                      \
    X(WEAK_ID_IS, kOne, kObject, recheck)                       \
    X(EQUALS, kOne, kValue, prove_value)                        \
    X(LENGTH, kOne, kNothing, prove_length)                     \
    X(KEYS_ARE, kOne, kKeys, prove_keys)                        \
    X(HAS_KEY, kOne, kKey, prove_presence)                      \
    X(NO_KEY, kOne, kKey, prove_presence)                       \
    X(NO_ATTR, kOne, kKey, prove_no_attribute)                  \
    X(TYPE_ATTR_IS, kNone, kTypeAttribute, prove_class_attribute) \
    X(MRO_IS, kOne, kObject, prove_mro)                         \
    X(CODE_IS, kOne, kCode, prove_code)                         \
    X(SAME, kTwo, kNothing, prove_address)                      \
    X(DISTINCT, kMore, kNothing, prove_address)                 \
    X(TENSOR, kOne, kValue, prove_tensor)                       \
    X(PREDICATE, kList, kCallable, run_again)                   \
    X(RELATION, kList, kCallable, run_again)                    \
    X(APART, kList, kCallable, run_again)                       \
    X(UNRECORDED, kOne, kCallable, prove_unrecorded)            \
    X(GLOBAL_STATE, kNone, kCallable, run_again)

enum class OpCode : unsigned char {
#define X(name, reads, operand, proof) name,
    STATOR_LOADS(X) STATOR_CHECKS(X)
#undef X
    COUNT_
};

constexpr OpCode kFirstCheck = OpCode::TYPE_IS;

struct Operation {
    const char* name;
    Reads reads;
    Operand operand;
    const char* reads_name;
    const char* operand_name;
    const char* proof_name;
};

constexpr Operation kOperations[] = {
#define X(name, reads, operand, proof) {#name, Reads::reads, Operand::operand, #reads, #operand, #proof},
    STATOR_LOADS(X) STATOR_CHECKS(X)
#undef X
};

constexpr const Operation& row_of(OpCode code) { return kOperations[static_cast<int>(code)]; }

// Does it read a first register?
constexpr bool reads_register(OpCode code) {
    return row_of(code).reads != Reads::kNone && row_of(code).reads != Reads::kList;
}

}  // namespace stator
