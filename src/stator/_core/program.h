// Guard programs: flat lists of loads and checks, run by one loop.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "ops.h"
#include "registers.h"
#include "state.h"

namespace stator {

// What an operation knows beyond its inline operands.
struct OpExtra {
    virtual ~OpExtra() = default;
};

// The registers of a check that reads more than one: those of the instruction from the `first` on.
struct RegisterList : OpExtra {
    explicit RegisterList(PyObject* given, Py_ssize_t first = 0);
    std::vector<uint32_t> registers;
};

struct Op {
    OpCode code;
    uint32_t reg = 0;              // the first register it reads
    Py_ssize_t index = 0;          // a position, a length or a flag
    PyObject* object = nullptr;    // borrowed from the program's instruction tuples
    PyObject* second = nullptr;    // ditto
    Py_hash_t hash = -1;           // of `object`, where it is looked up in dicts
    std::shared_ptr<OpExtra> extra;
};

// An output: one register, or several handed over as one tuple.
struct Output {
    bool is_block;
    std::vector<uint32_t> registers;
};

class Revalidation;

struct Program {
    PyObject_HEAD
    PyObject* instructions;  // the list of tuples it was made from: owns every object the operations use
    PyObject* dict;
    PyObject* weakrefs;
    std::vector<Op>* ops;
    std::vector<Output>* outputs;
    Revalidation* revalidation;
    char strict;  // its decisions are re-checked, whatever holds for others
};

// Is each decision of the program to be re-checked with the reference program?
inline bool is_strict(const Program* program) { return state.strict || program->strict; }

constexpr Py_ssize_t kPassed = -1;
constexpr Py_ssize_t kRaised = -2;  // an exception that is no Exception (KeyboardInterrupt …) came out of a check

// Runs the operations from `start` on; the registers of those before it are in place.  Gives kPassed, kRaised, or
// the index of the operation that failed.
Py_ssize_t run_program(const Program* program, const Call& call, Registers& registers, size_t start);

// The outputs as an array to call with, owned.
class OutputArray {
  public:
    OutputArray() = default;
    OutputArray(const OutputArray&) = delete;
    OutputArray& operator=(const OutputArray&) = delete;
    ~OutputArray();
    // Takes the outputs out of the registers; false with an exception.
    bool take(const Program* program, PyObject* const* registers);
    void clear();
    // The outputs as a new tuple.
    PyObject* as_tuple() const;
    PyObject* const* data() const { return items_ + 1; }  // one place before it is free for the callee
    size_t count() const { return count_; }

  private:
    static constexpr size_t kInline = 16;
    size_t count_ = 0;
    PyObject* inline_[kInline + 1];
    PyObject** items_ = inline_;
};

// How many nanoseconds each operation of a walk takes, as a tuple; None if one fails, null with an exception.
PyObject* time_operations(const Program* program, const Call& call);

// Asks the reference program for its verdict too; false (with RuntimeError) if it differs.  No outputs: it failed.
bool reference_agrees(Program* program, const Call& call, const OutputArray* outputs);

// Runs the whole program, by revalidation if possible, and re-checked in strict mode; see run_program().
Py_ssize_t pass_program(Program* program, const Call& call, OutputArray& outputs);

// Keeps an exception that is set while other code is run.
class ExceptionKept {
  public:
    ExceptionKept() { PyErr_Fetch(&type_, &value_, &traceback_); }
    ~ExceptionKept() { PyErr_Restore(type_, value_, traceback_); }
    ExceptionKept(const ExceptionKept&) = delete;
    ExceptionKept& operator=(const ExceptionKept&) = delete;

  private:
    PyObject *type_, *value_, *traceback_;
};

// The text that says which guard fails for this call, or null with an exception.
Ref failure_text(Program* program, const Call& call);

Ref slots_as_tuple(const Call& call);

extern PyType_Spec program_spec;

}  // namespace stator
