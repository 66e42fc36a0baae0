// Keeping what lies in the memory of small tensors, to be put back if a graph that writes them fails.
//
// A plan says of each tensor what it is: data type, device, dispatch keys, size of an element.  What is kept are the
// elements of all of them, one after the other, in a bytes object that belongs to the call.  Tensors that are not as the
// plan says are left to Python: see pytorch/graph/undo.py.
#include "functions.h"
#include <cstring>

#include "tensors.h"

namespace stator {

namespace {

constexpr size_t kMostBytes = 1 << 18;  // beyond, torch copies with several threads
constexpr size_t kMostTensors = 64;

struct Planned {
    uint64_t keys, kind, itemsize;
};

// The plan's entry of a tensor; the plan is a bytes object, whose contents may lie anywhere.
Planned planned(PyObject* plan, size_t which) {
    Planned entry;
    std::memcpy(&entry, PyBytes_AS_STRING(plan) + which * sizeof(Planned), sizeof(Planned));
    return entry;
}

// A plan and as many tensors as it is of; else an exception is set.
bool are_plan_and_tensors(PyObject* const* args, Py_ssize_t count, Py_ssize_t expected, size_t* tensors) {
    if (count == expected && PyBytes_Check(args[0]) && PyTuple_Check(args[1])) {
        *tensors = static_cast<size_t>(PyTuple_GET_SIZE(args[1]));
        if (*tensors <= kMostTensors && static_cast<size_t>(PyBytes_GET_SIZE(args[0])) == *tensors * sizeof(Planned)) {
            return true;
        }
    }
    PyErr_SetString(PyExc_TypeError, "expected a plan and the tensors that it is for");
    return false;
}

// Reads where the tensors' elements lie, and how many bytes these are; false if one is not as the plan says.
bool read_all(PyObject* plan, PyObject* tensors, size_t count, Dense* dense, size_t* bytes) {
    *bytes = 0;
    for (size_t i = 0; i < count; i++) {
        Planned entry = planned(plan, i);
        PyObject* tensor = PyTuple_GET_ITEM(tensors, static_cast<Py_ssize_t>(i));
        if (!read_dense(tensor, entry.itemsize, &dense[i])) return false;
        if (dense[i].keys != entry.keys || dense[i].kind != entry.kind) return false;
        if (dense[i].bytes > kMostBytes) return false;
        *bytes += dense[i].bytes;
    }
    return *bytes <= kMostBytes;
}

PyObject* plan_keeping(PyObject*, PyObject* const* args, Py_ssize_t count) {
    if (count != 2 || !PyTuple_Check(args[0]) || !PyTuple_Check(args[1]) ||
        PyTuple_GET_SIZE(args[0]) != PyTuple_GET_SIZE(args[1])) {
        PyErr_SetString(PyExc_TypeError, "plan_keeping() takes tensors and the sizes of their elements");
        return nullptr;
    }
    Py_ssize_t tensors = PyTuple_GET_SIZE(args[0]);
    if (static_cast<size_t>(tensors) > kMostTensors) Py_RETURN_NONE;
    Ref plan = Ref::steal(PyBytes_FromStringAndSize(nullptr, tensors * static_cast<Py_ssize_t>(sizeof(Planned))));
    if (!plan) return nullptr;
    for (Py_ssize_t i = 0; i < tensors; i++) {
        size_t itemsize = PyLong_AsSize_t(PyTuple_GET_ITEM(args[1], i));
        if (PyErr_Occurred()) return nullptr;
        Dense dense;
        if (!read_dense(PyTuple_GET_ITEM(args[0], i), itemsize, &dense)) Py_RETURN_NONE;
        Planned entry{dense.keys, dense.kind, itemsize};
        std::memcpy(PyBytes_AS_STRING(plan.get()) + static_cast<size_t>(i) * sizeof(Planned), &entry, sizeof(Planned));
    }
    return plan.release();
}

PyObject* keep_contents(PyObject*, PyObject* const* args, Py_ssize_t count) {
    size_t tensors, bytes;
    if (!are_plan_and_tensors(args, count, 2, &tensors)) return nullptr;
    Dense dense[kMostTensors];
    if (!read_all(args[0], args[1], tensors, dense, &bytes)) Py_RETURN_NONE;
    Ref kept = Ref::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(bytes)));
    if (!kept) return nullptr;
    char* place = PyBytes_AS_STRING(kept.get());
    for (size_t i = 0; i < tensors; i++) {
        if (!dense[i].bytes) continue;  // the memory of such a tensor may be null
        std::memcpy(place, dense[i].memory, dense[i].bytes);
        place += dense[i].bytes;
    }
    return kept.release();
}

PyObject* put_contents_back(PyObject*, PyObject* const* args, Py_ssize_t count) {
    size_t tensors, bytes;
    if (!are_plan_and_tensors(args, count, 3, &tensors)) return nullptr;
    if (!PyBytes_Check(args[2])) {
        PyErr_SetString(PyExc_TypeError, "expected what keep_contents() has returned");
        return nullptr;
    }
    Dense dense[kMostTensors];
    if (!read_all(args[0], args[1], tensors, dense, &bytes)) Py_RETURN_FALSE;
    if (bytes != static_cast<size_t>(PyBytes_GET_SIZE(args[2]))) Py_RETURN_FALSE;
    const char* place = PyBytes_AS_STRING(args[2]);
    for (size_t i = 0; i < tensors; i++) {
        if (!dense[i].bytes) continue;
        std::memcpy(dense[i].memory, place, dense[i].bytes);
        place += dense[i].bytes;
    }
    Py_RETURN_TRUE;
}

}  // namespace

PyMethodDef keeping_functions[] = {
    {"plan_keeping", as_method(plan_keeping), METH_FASTCALL,
     "plan_keeping(tensors, itemsizes): what keep_contents() needs to know of tensors in the CPU's memory, or None"},
    {"keep_contents", as_method(keep_contents), METH_FASTCALL,
     "keep_contents(plan, tensors): what lies in their memory, or None if they are not as planned"},
    {"put_contents_back", as_method(put_contents_back), METH_FASTCALL,
     "put_contents_back(plan, tensors, kept): False, and nothing is written, if they are not as planned any more"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace stator
