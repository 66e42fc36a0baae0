#include "tensors.h"

#include <cstring>

#include "functions.h"
#include "loads.h"
#include "state.h"
#include "versions.h"

namespace stator {

namespace {

// Offsets in bytes.  All zero, and thus unused, until configured.
struct Layout {
    bool known = false;
    PyTypeObject* tensor = nullptr;  // torch.Tensor, borrowed: it is there for ever
    Py_ssize_t impl = 0;             // of the TensorImpl* in the Python object
    unsigned long long vtable = 0;   // of a plain TensorImpl, its first word
    Py_ssize_t autograd = 0;         // of the AutogradMeta*, null for most tensors
    Py_ssize_t extra = 0;            // of a word that is null for plain tensors
    Py_ssize_t dims = 0;             // of: their number, 5 sizes, 5 strides (or a pointer to both)
    Py_ssize_t kind = 0;             // of the word with data type, device and flags
    Py_ssize_t keys = 0;             // of the dispatch key set
    unsigned long long kind_mask = 0;   // the bits of data type and device
    unsigned long long flags_mask = 0;  // the bits that must be as in a plain tensor
    unsigned long long flags = 0;
    unsigned long long requires_grad = 0;  // the function bool TensorImpl::requires_grad() const
    Py_ssize_t storage = 0;                // of the StorageImpl*; 0 if extents are left to Python
    Py_ssize_t storage_offset = 0;         // of the place in it, in elements
    Py_ssize_t data = 0;                   // of the pointer to the memory, in the StorageImpl
};

Layout layout;

template <class T> T read(const char* base, Py_ssize_t offset) {
    T value;
    std::memcpy(&value, base + offset, sizeof(T));
    return value;
}

// The tensor's impl if its metadata lies there as configured, else null.
const char* plain_impl(PyObject* tensor) {
    const char* impl = read<const char*>(reinterpret_cast<const char*>(tensor), layout.impl);
    if (!impl || read<uint64_t>(impl, 0) != layout.vtable || read<uint64_t>(impl, layout.extra)) return nullptr;
    return (read<uint64_t>(impl, layout.kind) & layout.flags_mask) == layout.flags ? impl : nullptr;
}

// The same of any object.
const char* impl_of(PyObject* object) {
    return layout.known && PyObject_TypeCheck(object, layout.tensor) ? plain_impl(object) : nullptr;
}

bool reads_requires_grad(const char* impl) {
    if (!read<uint64_t>(impl, layout.autograd)) return false;
    return reinterpret_cast<bool (*)(const void*)>(layout.requires_grad)(impl);
}

const int64_t* sizes_of(const char* impl, size_t dims) {
    const char* place = impl + layout.dims + 8;
    if (dims > TensorCheck::kInlineDims) place = read<const char*>(place, 0);
    return reinterpret_cast<const int64_t*>(place);
}

const int64_t* strides_of(const int64_t* sizes, size_t dims) {
    return sizes + (dims > TensorCheck::kInlineDims ? dims : TensorCheck::kInlineDims);
}

bool dims_match(const TensorCheck& check, const char* impl) {
    size_t dims = check.sizes.size();
    if (read<uint64_t>(impl, layout.dims) != dims) return false;
    const int64_t* sizes = sizes_of(impl, dims);
    for (size_t i = 0; i < dims; i++) {
        if (sizes[i] != check.sizes[i] && check.sizes[i] != TensorCheck::kAny) return false;
    }
    if (!check.check_strides) return true;
    const int64_t* strides = strides_of(sizes, dims);
    for (size_t i = 0; i < dims; i++) {
        if (strides[i] != check.strides[i] && check.strides[i] != TensorCheck::kAny) return false;
    }
    return true;
}

// Might some of its sizes be marked as dynamic?  Runs no Python code.
bool may_be_marked(PyObject* tensor) {
    if (Py_TYPE(tensor)->tp_getattro != PyObject_GenericGetAttr) return true;
    PyObject* found = nullptr;
    if (lookup_attribute(tensor, state.mark_name, &found) < 0) forget_exception();
    if (!found) return false;
    Py_DECREF(found);
    return true;
}

}  // namespace

Verdict read_tensor_verdict(const TensorCheck& check, PyObject* object) {
    if (Py_TYPE(object) != check.type) return Verdict::kNo;
    const char* impl = impl_of(object);
    if (!impl) return Verdict::kUnknown;
    if (read<uint64_t>(impl, layout.keys) != check.keys || !dims_match(check, impl) ||
        reads_requires_grad(impl) != check.requires_grad) {
        return Verdict::kNo;
    }
    if (!check.kind_known || (check.fixes_sizes && may_be_marked(object))) return Verdict::kUnknown;
    return (read<uint64_t>(impl, layout.kind) & layout.kind_mask) == check.kind ? Verdict::kYes : Verdict::kNo;
}

namespace {

bool matches_in_python(PyObject* spec, PyObject* object) {
    Ref answer = Ref::steal(PyObject_CallMethodOneArg(spec, state.matches_name, object));
    int truth = answer ? PyObject_IsTrue(answer.get()) : -1;
    if (truth < 0) forget_exception();
    return truth > 0;
}

// The tensor matched: later ones with the same bits for data type and device need no Python.
void learn(TensorCheck& check, PyObject* tensor) {
    if (check.kind_known) return;
    const char* impl = impl_of(tensor);
    if (!impl || read<uint64_t>(impl, layout.keys) != check.keys || !dims_match(check, impl)) return;
    check.kind = read<uint64_t>(impl, layout.kind) & layout.kind_mask;
    check.kind_known = true;
}

bool parse_dims(PyObject* dims, std::vector<int64_t>& out) {
    if (!PyTuple_Check(dims)) return false;
    Py_ssize_t count = PyTuple_GET_SIZE(dims);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject* dim = PyTuple_GET_ITEM(dims, i);
        if (dim != Py_None && !PyLong_Check(dim)) return false;
        long long value = dim == Py_None ? TensorCheck::kAny : PyLong_AsLongLong(dim);
        if (PyErr_Occurred()) return false;
        if (dim != Py_None && value < 0) return false;
        out.push_back(value);
    }
    return true;
}

bool parse_spec(PyObject* spec, TensorCheck& check) {
    auto get = [spec](const char* name) { return Ref::steal(PyObject_GetAttrString(spec, name)); };
    Ref type = get("cls"), keys = get("keys"), sizes = get("sizes"), strides = get("strides");
    Ref grad = get("requires_grad"), extra = get("extra");
    if (!type || !keys || !sizes || !strides || !grad || !extra) return false;
    if (!PyType_Check(type.get()) || !PyLong_Check(keys.get()) || PyObject_IsTrue(extra.get()) != 0) return false;
    check.type = reinterpret_cast<PyTypeObject*>(type.get());  // the spec, which the program owns, holds it
    check.keys = PyLong_AsUnsignedLongLong(keys.get());
    check.requires_grad = grad.get() == Py_True;
    check.check_strides = strides.get() != Py_None;
    if (!parse_dims(sizes.get(), check.sizes)) return false;
    for (int64_t size : check.sizes) check.fixes_sizes |= size != TensorCheck::kAny;
    if (!check.check_strides) return true;
    return parse_dims(strides.get(), check.strides) && check.strides.size() == check.sizes.size();
}

}  // namespace

std::shared_ptr<OpExtra> make_tensor_check(PyObject* spec) {
    auto check = std::make_shared<TensorCheck>();
    if (parse_spec(spec, *check) && !PyErr_Occurred()) return check;
    forget_exception();
    return nullptr;
}

void tensor_parts(PyObject* tensor, const void** impl, const void** autograd) {
    const char* found = plain_impl(tensor);
    *impl = found;
    *autograd = found ? read<const void*>(found, layout.autograd) : nullptr;
}

bool is_unrecorded(PyObject* tensor) {
    const char* impl = layout.known ? plain_impl(tensor) : nullptr;
    return impl && !read<const void*>(impl, layout.autograd);
}

PyObject* tensor_number(const Op& op, PyObject* tensor) {
    const char* impl = impl_of(tensor);
    bool is_offset = op.code == OpCode::OFFSET;
    if (!impl || (is_offset && !layout.storage)) {
        const char* name = is_offset ? "storage_offset" : op.code == OpCode::SIZE ? "size" : "stride";
        Ref found = Ref::steal(PyObject_CallMethod(tensor, name, is_offset ? nullptr : "n", op.index));
        return found ? PyNumber_Long(found.get()) : nullptr;
    }
    if (is_offset) return PyLong_FromLongLong(read<int64_t>(impl, layout.storage_offset));
    size_t dims = read<uint64_t>(impl, layout.dims);
    if (static_cast<size_t>(op.index) >= dims) return nullptr;
    const int64_t* sizes = sizes_of(impl, dims);
    return PyLong_FromLongLong((op.code == OpCode::SIZE ? sizes : strides_of(sizes, dims))[op.index]);
}

bool tensor_extent(PyObject* tensor, size_t itemsize, Extent* extent) {
    const char* impl = layout.known && layout.storage ? plain_impl(tensor) : nullptr;
    if (!impl) return false;
    extent->storage = read<const char*>(impl, layout.storage);
    if (!extent->storage) return false;
    size_t dims = read<uint64_t>(impl, layout.dims);
    const int64_t* sizes = sizes_of(impl, dims);
    const int64_t* strides = strides_of(sizes, dims);
    int64_t span = 1;  // up to the last element; strides are never negative
    for (size_t i = 0; i < dims; i++) span = sizes[i] == 0 || span == 0 ? 0 : span + (sizes[i] - 1) * strides[i];
    auto memory = read<uint64_t>(static_cast<const char*>(extent->storage), layout.data);
    extent->begin = memory + static_cast<uint64_t>(read<int64_t>(impl, layout.storage_offset)) * itemsize;
    extent->end = memory ? extent->begin + static_cast<uint64_t>(span) * itemsize : extent->begin;
    return true;
}

bool read_dense(PyObject* tensor, size_t itemsize, Dense* dense) {
    Extent extent;
    if (!tensor_extent(tensor, itemsize, &extent)) return false;
    const char* impl = plain_impl(tensor);
    size_t dims = read<uint64_t>(impl, layout.dims);
    const int64_t* sizes = sizes_of(impl, dims);
    size_t bytes = itemsize;
    for (size_t i = 0; i < dims; i++) bytes *= static_cast<size_t>(sizes[i]);
    if (extent.end - extent.begin != bytes) return false;  // so too where there are elements and no memory
    dense->memory = reinterpret_cast<char*>(extent.begin);
    dense->bytes = bytes;
    dense->keys = read<uint64_t>(impl, layout.keys);
    dense->kind = read<uint64_t>(impl, layout.kind) & layout.kind_mask;
    return true;
}

bool check_tensor(const Op& op, PyObject* object) {
    auto* check = static_cast<TensorCheck*>(op.extra.get());
    if (!check) return matches_in_python(op.object, object);
    Verdict verdict = read_tensor_verdict(*check, object);
    if (verdict != Verdict::kUnknown) return verdict == Verdict::kYes;
    bool matches = matches_in_python(op.object, object);
    if (matches) learn(*check, object);
    return matches;
}

namespace {

PyObject* configure_tensors(PyObject*, PyObject* args, PyObject* kwargs) {
    static const char* names[] = {"tensor",  "impl",    "vtable",         "autograd", "extra",     "dims",
                                  "kind",    "keys",           "kind_mask", "flags_mask", "flags",
                                  "requires_grad", "storage", "storage_offset", "data", nullptr};
    Layout found;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "$OnKnnnnnKKKKnnn:configure_tensors", const_cast<char**>(names),
                                     &found.tensor, &found.impl, &found.vtable, &found.autograd, &found.extra, &found.dims,
                                     &found.kind, &found.keys, &found.kind_mask, &found.flags_mask, &found.flags,
                                     &found.requires_grad, &found.storage, &found.storage_offset, &found.data)) {
        return nullptr;
    }
    found.known = found.vtable != 0 && found.requires_grad != 0;
    layout = found;
    Py_RETURN_NONE;
}

PyObject* read_tensor(PyObject*, PyObject* tensor) {
    const char* impl = layout.known ? plain_impl(tensor) : nullptr;
    if (!impl) Py_RETURN_NONE;
    size_t dims = read<uint64_t>(impl, layout.dims);
    const int64_t* sizes = sizes_of(impl, dims);
    const int64_t* strides = strides_of(sizes, dims);
    auto count = static_cast<Py_ssize_t>(dims);
    Ref shape = Ref::steal(PyTuple_New(count)), steps = Ref::steal(PyTuple_New(count));
    if (!shape || !steps) return nullptr;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyTuple_SET_ITEM(shape.get(), i, PyLong_FromLongLong(sizes[i]));
        PyTuple_SET_ITEM(steps.get(), i, PyLong_FromLongLong(strides[i]));
    }
    if (PyErr_Occurred()) return nullptr;
    return Py_BuildValue("KNNN", static_cast<unsigned long long>(read<uint64_t>(impl, layout.keys)),
                         PyBool_FromLong(reads_requires_grad(impl)), shape.release(), steps.release());
}

}  // namespace

PyMethodDef tensor_functions[] = {
    {"configure_tensors", as_method(configure_tensors), METH_VARARGS | METH_KEYWORDS,
     "Tell where a TensorImpl keeps its metadata; see stator.pytorch.tensors.reader"},
    {"read_tensor", read_tensor, METH_O,
     "(keys, requires_grad, sizes, strides) as the core reads them, or None"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace stator
