// Reading the metadata of tensors straight from their TensorImpl, without torch's headers.
//
// Where its fields lie is found out by experiment at run time (pytorch/tensors/reader.py) and told to configure_tensors().
// What cannot be read with certainty that way is left to the spec's own `matches`, in Python.
#pragma once
#include "program.h"

namespace stator {

enum class Verdict { kNo, kYes, kUnknown };

struct TensorCheck : OpExtra {
    static constexpr int64_t kAny = INT64_MIN;
    static constexpr size_t kInlineDims = 5;

    PyTypeObject* type = nullptr;
    uint64_t keys = 0;
    uint64_t kind = 0;  // the bits of data type and device; learnt from the first tensor that matched
    bool kind_known = false;
    bool requires_grad = false;
    bool check_strides = false;
    bool fixes_sizes = false;  // some size is a number, which a mark may say to vary
    std::vector<int64_t> sizes;    // a number or kAny
    std::vector<int64_t> strides;  // likewise
};

// What the operation TENSOR needs, or null if the spec is left to Python.
std::shared_ptr<OpExtra> make_tensor_check(PyObject* spec);

// The verdict that can be given without running any Python code.
Verdict read_tensor_verdict(const TensorCheck& check, PyObject* object);

// Where the parts of a tensor lie that a verdict looks at: its impl and its AutogradMeta, or null.
void tensor_parts(PyObject* tensor, const void** impl, const void** autograd);

// Is it a tensor that autograd keeps nothing about?  Then it is a leaf and no view.  Runs no Python code; the object is
// known to be a tensor.
bool is_unrecorded(PyObject* tensor);

// A size, a stride or the storage offset of a tensor, read off it or else asked of it; null with an exception.
PyObject* tensor_number(const Op& op, PyObject* tensor);

// The stretch of memory that a tensor's elements lie in, empty for one without elements or memory.
struct Extent {
    uint64_t begin, end;
    const void* storage;
};

// Finds it without running any Python code; false if it cannot be read off the tensor.
bool tensor_extent(PyObject* tensor, size_t itemsize, Extent* extent);

// A tensor whose elements fill one stretch of memory.
struct Dense {
    char* memory;
    size_t bytes;
    uint64_t keys, kind;  // what it is: its dispatch keys, the bits of data type and device
};

// Reads it without running any Python code; false if it is none, or cannot be read off.  The object is known to be a
// tensor, whose elements have this size.
bool read_dense(PyObject* tensor, size_t itemsize, Dense* dense);

// Whether the object is a tensor as the operation's spec says; asks Python where it must.
bool check_tensor(const Op& op, PyObject* object);

}  // namespace stator
