#include "region.h"

#include <structmember.h>

#include <vector>

#include "context.h"
#include "functions.h"
#include "state.h"
#include "versions.h"

namespace stator {

// Takes them out of both their sides; the entries go when the reference handed back does.
void forget_entries(CodeEntries* code_entries) {
    CodeCache* cache = code_entries->cache;
    if (cache->last_ == code_entries) cache->last_ = nullptr;
    cache->by_region.erase(code_entries->region);
    code_entries->region->all_entries->erase(code_entries);
    delete code_entries;
}

CodeCache::~CodeCache() {
    while (!by_region.empty()) {
        CodeEntries* code_entries = by_region.begin()->second;
        auto chain = std::move(code_entries->chain);
        forget_entries(code_entries);
    }
    Py_CLEAR(return_stub);
}

CodeEntries* CodeCache::code_entries(Region* region) {
    if (last_ && last_->region == region) return last_;
    auto found = by_region.find(region);
    if (found == by_region.end()) return nullptr;
    last_ = found->second;
    return last_;
}

CodeEntries* CodeCache::make_entries(Region* region) {
    if (CodeEntries* found = code_entries(region)) return found;
    auto* made = new CodeEntries{region, this, nullptr};
    by_region.emplace(region, made);
    region->all_entries->insert(made);
    last_ = made;
    return made;
}

CodeCache* code_cache(PyCodeObject* code, bool create) {
    void* found = nullptr;
    if (code_get_extra(as_object(code), state.extra_index, &found) < 0) return nullptr;
    if (found || !create) return static_cast<CodeCache*>(found);
    auto* made = new CodeCache;
    if (code_set_extra(as_object(code), state.extra_index, made) < 0) {
        delete made;
        return nullptr;
    }
    return made;
}

void free_code_cache(void* cache) { delete static_cast<CodeCache*>(cache); }

bool add_entry(Region* region, PyCodeObject* code, Entry* entry) {
    CodeCache* cache = code_cache(code, true);
    if (!cache) return false;
    CodeEntries* code_entries = cache->make_entries(region);
    while (true) {
        auto old = code_entries->chain;
        auto chain = Chain::prepend(entry, old.get());  // compares operands, which may run Python code
        if (PyErr_Occurred()) return false;
        code_entries = cache->make_entries(region);
        if (code_entries->chain != old) continue;  // that code, or another thread, was here meanwhile
        code_entries->chain = std::move(chain);
        return true;
    }
}

namespace {

Region* as_region(PyObject* self) { return reinterpret_cast<Region*>(self); }

void clear_entries(Region* self) {
    std::vector<ChainRef> released;  // destructors run only when the tables are consistent again
    while (!self->all_entries->empty()) {
        CodeEntries* code_entries = *self->all_entries->begin();
        released.push_back(std::move(code_entries->chain));
        forget_entries(code_entries);
    }
}

PyObject* region_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    static const char* names[] = {"owner", nullptr};
    PyObject* owner = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Region", const_cast<char**>(names), &owner)) return nullptr;
    Region* self = as_region(type->tp_alloc(type, 0));
    if (!self) return nullptr;
    self->owner = Py_NewRef(owner);
    self->all_entries = new std::unordered_set<CodeEntries*>;
    return as_object(self);
}

int region_traverse(PyObject* object, visitproc visit, void* arg) {
    Region* self = as_region(object);
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->owner);
    if (self->all_entries) {
        for (CodeEntries* code_entries : *self->all_entries) {
            if (!code_entries->chain) continue;
            for (const Link& link : code_entries->chain->links()) Py_VISIT(link.entry);
        }
    }
    return 0;
}

int region_clear(PyObject* object) {
    Region* self = as_region(object);
    clear_entries(self);
    Py_CLEAR(self->owner);
    return 0;
}

void region_dealloc(PyObject* object) {
    Region* self = as_region(object);
    PyTypeObject* type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    if (self->weakrefs) PyObject_ClearWeakRefs(object);
    if (self->all_entries) region_clear(object);
    delete self->all_entries;
    type->tp_free(object);
    Py_DECREF(type);
}

PyObject* region_call(PyObject* object, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    if (nargs < 1) {
        PyErr_SetString(PyExc_TypeError, "Region.call() needs a function");
        return nullptr;
    }
    Ref self = Ref::borrow(object);
    RegionScope scope(thread_context(), as_region(object));
    return PyObject_Vectorcall(args[0], args + 1, static_cast<size_t>(nargs - 1), kwnames);
}

bool check_code(PyObject* code) {
    if (PyCode_Check(code)) return true;
    PyErr_Format(PyExc_TypeError, "expected a code object, not %.100s", Py_TYPE(code)->tp_name);
    return false;
}

PyObject* region_add(PyObject* object, PyObject* args) {
    PyObject *code, *entry;
    if (!PyArg_ParseTuple(args, "OO!:add", &code, state.entry_type, &entry) || !check_code(code)) return nullptr;
    if (!add_entry(as_region(object), reinterpret_cast<PyCodeObject*>(code), reinterpret_cast<Entry*>(entry))) {
        return nullptr;
    }
    Py_RETURN_NONE;
}

PyObject* region_entries(PyObject* object, PyObject* code) {
    if (!check_code(code)) return nullptr;
    CodeCache* cache = code_cache(reinterpret_cast<PyCodeObject*>(code), false);
    if (!cache && PyErr_Occurred()) return nullptr;
    CodeEntries* code_entries = cache ? cache->code_entries(as_region(object)) : nullptr;
    PyObject* entries = PyList_New(0);
    ChainRef chain = code_entries ? code_entries->chain : nullptr;
    for (size_t i = chain ? chain->links().size() : 0; entries && i-- > 0;) {
        if (PyList_Append(entries, as_object(chain->links()[i].entry)) < 0) Py_CLEAR(entries);
    }
    return entries;
}

PyObject* region_forget(PyObject* object, PyObject*) {
    clear_entries(as_region(object));
    Py_RETURN_NONE;
}

PyMethodDef region_methods[] = {
    {"call", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(region_call)),
     METH_FASTCALL | METH_KEYWORDS, "call(fn, *args, **kwargs): call fn with this region as the thread's, hook on"},
    {"add", region_add, METH_VARARGS, "add(code, entry): put an entry first in this region's cache of the code"},
    {"entries", region_entries, METH_O, "entries(code) -> list of the code's entries here, oldest first"},
    {"clear", region_forget, METH_NOARGS, "Drop all entries"},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef region_members[] = {
    {"owner", T_OBJECT, offsetof(Region, owner), 0, "what the region was made for"},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Region, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot region_slots[] = {
    {Py_tp_doc, const_cast<char*>("Region(owner=None)\n--\n\nThe caches of one stator.compile() call.")},
    {Py_tp_new, reinterpret_cast<void*>(region_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(region_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(region_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(region_clear)},
    {Py_tp_methods, region_methods},
    {Py_tp_members, region_members},
    {0, nullptr},
};

// A target leaves a call to Python: its frames are traced for the region that the target runs for.
PyObject* call_traced(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
    if (count < 1) {
        PyErr_SetString(PyExc_TypeError, "call_traced() needs a function");
        return nullptr;
    }
    Context& context = thread_context();
    RegionScope scope(context, context.standing_in);
    return PyObject_Vectorcall(args[0], args + 1, static_cast<size_t>(count - 1), names);
}

}  // namespace

PyMethodDef region_functions[] = {
    {"call_traced", as_method(call_traced), METH_FASTCALL | METH_KEYWORDS,
     "call_traced(function, *args, **kwargs): the call, traced for the region whose target makes it"},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Spec region_spec = {"stator._core.Region", sizeof(Region), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                           region_slots};

}  // namespace stator
