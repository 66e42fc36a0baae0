// The registers of a guard walk: what has been loaded so far, owned, in the order of loading.
#pragma once
#include <cstdlib>
#include <new>

#include "ref.h"

namespace stator {

// The call whose guards are checked: its function and the raw values of its argument slots, all borrowed.
struct Call {
    PyObject* function;
    PyObject* const* slots;
    Py_ssize_t count;
};

// Owning the objects (not borrowing them) is what makes it safe that some steps run Python code.
class Registers {
  public:
    Registers() = default;
    Registers(const Registers&) = delete;
    Registers& operator=(const Registers&) = delete;
    ~Registers() {
        truncate(0);
        if (items_ != inline_) std::free(items_);
    }

    // Room for `count` registers in all; what is there stays.
    void reserve(size_t count) {
        if (count <= capacity_) return;
        auto* grown = static_cast<PyObject**>(std::malloc(count * sizeof(PyObject*)));
        if (!grown) throw std::bad_alloc();
        for (size_t i = 0; i < filled_; i++) grown[i] = items_[i];
        if (items_ != inline_) std::free(items_);
        items_ = grown;
        capacity_ = count;
    }
    void push(PyObject* stolen) { items_[filled_++] = stolen; }
    PyObject* operator[](size_t index) const { return items_[index]; }
    PyObject* const* data() const { return items_; }
    size_t filled() const { return filled_; }

    // Drops all from the `count`-th on.
    void truncate(size_t count) {
        while (filled_ > count) {
            PyObject* last = items_[--filled_];
            Py_DECREF(last);
        }
    }

  private:
    static constexpr size_t kInline = 32;
    size_t filled_ = 0;
    size_t capacity_ = kInline;
    PyObject** items_ = inline_;
    PyObject* inline_[kInline];
};

}  // namespace stator
