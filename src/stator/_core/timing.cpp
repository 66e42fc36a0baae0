// How long each operation of a guard program takes, for who asks which guards are dear.
#include <algorithm>
#include <chrono>

#include "checks.h"
#include "loads.h"
#include "program.h"

namespace stator {

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kPasses = 2;   // the first finds what the caches do not have
constexpr int kRepeats = 6;  // of an operation: the clock ticks less often than many of them take

int64_t nanoseconds(Clock::duration duration) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count();
}

// What reading the clock takes by itself.
int64_t reading_the_clock() {
    int64_t least = INT64_MAX;
    for (int i = 0; i < 100; i++) {
        auto before = Clock::now();
        least = std::min(least, nanoseconds(Clock::now() - before));
    }
    return least;
}

// Performs one operation several times; false if it fails.
bool perform(const Op& op, const Call& call, Registers& registers) {
    Ref loaded;
    for (int i = 0; i < kRepeats; i++) {
        if (op.code < kFirstCheck) {
            loaded = Ref::steal(load(op, call, registers.data()));
            if (!loaded) return false;
        } else if (!check(op, registers.data())) {
            return false;
        }
    }
    if (loaded) registers.push(loaded.release());
    return true;
}

// One walk; false where an operation fails.
bool walk(const Program* program, const Call& call, std::vector<int64_t>& least) {
    Registers registers;
    registers.reserve(least.size());
    for (size_t i = 0; i < least.size(); i++) {
        auto before = Clock::now();
        if (!perform((*program->ops)[i], call, registers)) return false;
        least[i] = std::min(least[i], nanoseconds(Clock::now() - before));
    }
    return true;
}

}  // namespace

PyObject* time_operations(const Program* program, const Call& call) {
    std::vector<int64_t> least(program->ops->size(), INT64_MAX);
    for (int pass = 0; pass < kPasses; pass++) {
        if (walk(program, call, least)) continue;
        if (PyErr_Occurred()) return nullptr;
        Py_RETURN_NONE;
    }
    const int64_t clock = reading_the_clock();
    Ref times = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(least.size())));
    for (size_t i = 0; times && i < least.size(); i++) {
        PyObject* time = PyLong_FromLongLong(std::max<int64_t>(0, least[i] - clock) / kRepeats);
        if (!time) return nullptr;
        PyTuple_SET_ITEM(times.get(), static_cast<Py_ssize_t>(i), time);
    }
    return times.release();
}

}  // namespace stator
