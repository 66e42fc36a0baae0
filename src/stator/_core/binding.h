// Binding a call's arguments to a function's argument slots without making a frame.
#pragma once
#include <vector>

#include "registers.h"

namespace stator {

class BoundArguments {
  public:
    // False if the arguments do not fit, or the case is left to CPython; no exception is set.
    bool bind(PyObject* function, PyObject* instance, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);

    // Valid as long as this object and the arguments given to bind().
    const Call& call() const { return call_; }

  private:
    bool bind_slowly(PyCodeObject* code, PyObject* instance, PyObject* const* args, Py_ssize_t nargs,
                     PyObject* kwnames);
    bool bind_positional(PyCodeObject* code, PyObject* instance, PyObject* const* args, Py_ssize_t nargs);
    bool bind_keywords(PyCodeObject* code, PyObject* const* values, PyObject* kwnames);
    bool fill_defaults(PyCodeObject* code);

    static constexpr size_t kInline = 12;
    Call call_{};
    PyObject* inline_[kInline];
    std::vector<PyObject*> more_;
    PyObject** slots_ = inline_;
    Ref extra_positional_;  // *args
    Ref extra_keywords_;    // **kwargs
};

}  // namespace stator
