#include "finalizers.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "dispatch.h"
#include "functions.h"
#include "tail_call.h"
#include "versions.h"

namespace stator {

namespace {

Slots bit_of(Py_ssize_t slot) { return Slots{1} << std::min<Py_ssize_t>(slot, 63); }

bool has_finalizer(PyObject* object) {
    PyTypeObject* type = Py_TYPE(object);
    bool suspends = type == &PyGen_Type || type == &PyCoro_Type || type == &PyAsyncGen_Type;
    return suspends ? closing_shows(object) : type->tp_finalize || type->tp_del;
}

bool calls_back(PyObject* object) {
    if (!PyType_SUPPORTS_WEAKREFS(Py_TYPE(object))) return false;
    auto** list = reinterpret_cast<PyWeakReference**>(PyObject_GET_WEAKREFS_LISTPTR(object));
    for (PyWeakReference* reference = *list; reference; reference = reference->wr_next) {
        if (reference->wr_callback) return true;
    }
    return false;
}

bool is_noticed(PyObject* object) { return has_finalizer(object) || calls_back(object); }

// Follows what ends when references go, as the interpreter would: an object that nothing else refers to, and what
// that alone refers to. (Cycles wait for the collector.)
class Search {
  public:
    // One more reference goes. The type of something whose end is noticed; null if there is nothing.
    PyTypeObject* drop(PyObject* object) {
        noticed_ = nullptr;
        count(object);
        while (!open_.empty()) {
            PyObject* next = open_.back();
            open_.pop_back();
            Py_TYPE(next)->tp_traverse(next, &Search::visit, this);
        }
        return noticed_;
    }

  private:
    static int visit(PyObject* object, void* self) {
        static_cast<Search*>(self)->count(object);
        return 0;
    }

    void count(PyObject* object) {
        Py_ssize_t references = Py_REFCNT(object);
        if (references > kMost) return;
        bool leads_on = PyObject_IS_GC(object) && !PyType_Check(object);
        // Each is looked at once: some show a reference to themselves that they do not own (frame objects).
        if ((leads_on || references > 1) && ++gone_[object] != references) return;
        if (!noticed_ && is_noticed(object)) noticed_ = Py_TYPE(object);
        if (leads_on) open_.push_back(object);
    }

    static constexpr Py_ssize_t kMost = 16;  // an object with more references is others' as well
    std::unordered_map<PyObject*, Py_ssize_t> gone_;
    std::vector<PyObject*> open_;
    PyTypeObject* noticed_ = nullptr;
};

}  // namespace

Ending find_ending(Frame* frame, const Resumed& resumed) {
    Ending ending;
    Search search;
    ValueRoom room;
    Py_ssize_t count = argument_slots(frame_code(frame));
    PyObject* const* values = frame_values(frame, count, room);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyTypeObject* noticed = values[i] ? search.drop(values[i]) : nullptr;
        if (!noticed) continue;
        ending.slots |= bit_of(i);
        ending.type = noticed;
        bool on_stack = i >= resumed.first_operand && i < resumed.end_of_operands;
        ending.is_operand = ending.is_operand || (on_stack && !PyIter_Check(values[i]));
    }
    PyObject* cells = PyFunction_GET_CLOSURE(frame_function(frame));
    for (Py_ssize_t i = 0; cells && i < PyTuple_GET_SIZE(cells); i++) {
        PyTypeObject* noticed = search.drop(PyTuple_GET_ITEM(cells, i));
        if (!noticed) continue;
        ending.slots |= kCells;
        ending.type = noticed;
    }
    return ending;
}

bool hand_over_arguments(Frame* frame, const Resumed& resumed, Region* region) {
    if (!resumed.calls) return true;
    ValueRoom room;
    PyObject* const* values = frame_values(frame, 2, room);
    Ref call = Ref::steal(make_resumed_call(values[0], values[1], region));
    Ref nothing = Ref::steal(PyTuple_New(0));
    if (!call || !nothing) return false;
    set_frame_value(frame, 0, call.release());
    set_frame_value(frame, 1, nothing.release());
    return true;
}

namespace {

PyObject* mark_resumed(PyObject*, PyObject* args) {
    PyObject* code;
    Resumed resumed;
    int calls;
    if (!PyArg_ParseTuple(args, "O!nnp:mark_resumed", &PyCode_Type, &code, &resumed.first_operand,
                          &resumed.end_of_operands, &calls)) {
        return nullptr;
    }
    CodeCache* cache = code_cache(reinterpret_cast<PyCodeObject*>(code), true);
    if (!cache) return nullptr;
    resumed.calls = calls;
    cache->resumed = resumed;
    Py_RETURN_NONE;
}

}  // namespace

PyMethodDef finalizer_functions[] = {
    {"mark_resumed", mark_resumed, METH_VARARGS,
     "mark_resumed(code, first, end, calls): frames of the code are resumed ones"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace stator
