// How the table of a set is laid out: what the order of its elements, and of all that comes out of it, depends on.
#include "functions.h"
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "hashes.h"
#include "versions.h"

namespace stator {

namespace {

constexpr char kFree = '.', kTaken = 'x', kDeleted = 'o';

PySetObject* as_set(PyObject* object) {
    if (PyAnySet_Check(object)) return reinterpret_cast<PySetObject*>(object);
    PyErr_SetString(PyExc_TypeError, "expected a set or a frozenset");
    return nullptr;
}

char state_of(const setentry& entry) { return !entry.key ? kFree : entry.hash == -1 ? kDeleted : kTaken; }

PyObject* places_of(PySetObject* set) {
    PyObject* places = PyBytes_FromStringAndSize(nullptr, set->mask + 1);
    if (places) std::transform(set->table, set->table + set->mask + 1, PyBytes_AS_STRING(places), state_of);
    return places;
}

// What stands in a table for an element that was deleted; borrowed, as tables hold it.
PyObject* deleted_mark() {
    static PyObject* mark = nullptr;
    if (mark) return mark;
    Ref set = Ref::steal(PySet_New(nullptr));
    if (!set || PySet_Add(set.get(), Py_None) < 0 || PySet_Discard(set.get(), Py_None) < 0) return nullptr;
    auto* self = reinterpret_cast<PySetObject*>(set.get());
    for (Py_ssize_t i = 0; i <= self->mask; i++) {
        if (state_of(self->table[i]) == kDeleted) return mark = self->table[i].key;
    }
    PyErr_SetString(PyExc_SystemError, "a set without a trace of what was deleted from it");
    return nullptr;
}

// A table as set_table() describes it, or with a finger of -1 to leave that as it is; checked: as many elements and
// hashes as places taken, and a place left free.
struct Plan {
    const char* places;
    Py_ssize_t size, used, deleted, finger;
    PyObject *hashes, *elements;
};

bool read_plan(PyObject* table, PyObject* elements, Plan& plan) {
    PyObject* places;
    if (!PyTuple_Check(table)) {
        PyErr_SetString(PyExc_TypeError, "a table is described by a tuple");
        return false;
    }
    if (!PyArg_ParseTuple(table, "SnO!:fill_table", &places, &plan.finger, &PyTuple_Type, &plan.hashes)) return false;
    plan.places = PyBytes_AS_STRING(places);
    plan.size = PyBytes_GET_SIZE(places);
    plan.elements = elements;
    plan.used = std::count(plan.places, plan.places + plan.size, kTaken);
    plan.deleted = std::count(plan.places, plan.places + plan.size, kDeleted);
    Py_ssize_t free = std::count(plan.places, plan.places + plan.size, kFree);
    if (plan.size < PySet_MINSIZE || (plan.size & (plan.size - 1)) || free < 1 ||
        plan.used + plan.deleted + free != plan.size || plan.finger < -1 ||
        plan.used != PyTuple_GET_SIZE(plan.hashes) || plan.used != PySequence_Fast_GET_SIZE(elements)) {
        PyErr_SetString(PyExc_ValueError, "no table of a set is like this");
        return false;
    }
    return true;
}

// Entries with owned keys; null where a hash is none.
setentry* make_entries(const Plan& plan, setentry* entries, PyObject* mark) {
    Py_ssize_t next = 0;
    for (Py_ssize_t i = 0; i < plan.size; i++) {
        entries[i] = {nullptr, 0};
        if (plan.places[i] == kDeleted) entries[i] = {mark, -1};
        if (plan.places[i] != kTaken) continue;
        Py_hash_t hash = PyLong_AsSsize_t(PyTuple_GET_ITEM(plan.hashes, next));
        if (hash == -1) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "-1 is no hash");
            for (Py_ssize_t k = 0; k < i; k++) {
                if (state_of(entries[k]) == kTaken) Py_DECREF(entries[k].key);
            }
            return nullptr;
        }
        entries[i] = {Py_NewRef(PySequence_Fast_GET_ITEM(plan.elements, next)), hash};
        remember_hash(entries[i].key, hash);
        next++;
    }
    return entries;
}

PyObject* set_layout(PyObject*, PyObject* object) {
    PySetObject* set = as_set(object);
    if (!set) return nullptr;
    // Making objects may run the collector, and finalisers may change the set: what is made last is filled at once.
    Ref places = Ref::steal(places_of(set));
    if (!places) return nullptr;
    Py_ssize_t used = set->used, next = 1;
    Ref result = Ref::steal(PyTuple_New(used + 1));
    if (!result) return nullptr;
    if (set->used != used || set->mask + 1 != PyBytes_GET_SIZE(places.get())) {
        PyErr_SetString(PyExc_RuntimeError, "the set has changed meanwhile");
        return nullptr;
    }
    PyTuple_SET_ITEM(result.get(), 0, places.release());
    for (Py_ssize_t i = 0; i <= set->mask; i++) {
        if (state_of(set->table[i]) == kTaken) PyTuple_SET_ITEM(result.get(), next++, Py_NewRef(set->table[i].key));
    }
    return result.release();
}

PyObject* set_table(PyObject*, PyObject* object) {
    PySetObject* set = as_set(object);
    if (!set) return nullptr;
    Ref places = Ref::steal(places_of(set)), hashes = Ref::steal(PyList_New(0));
    if (!places || !hashes) return nullptr;
    for (Py_ssize_t i = 0; i <= set->mask; i++) {
        if (state_of(set->table[i]) != kTaken) continue;
        Ref hash = Ref::steal(PyLong_FromSsize_t(set->table[i].hash));
        if (!hash || PyList_Append(hashes.get(), hash.get()) < 0) return nullptr;
    }
    Ref all = Ref::steal(PyList_AsTuple(hashes.get()));
    return all ? Py_BuildValue("OnO", places.get(), set->finger, all.get()) : nullptr;
}

PyObject* fill_table(PyObject*, PyObject* const* args, Py_ssize_t count) {
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "fill_table() takes three arguments");
        return nullptr;
    }
    PySetObject* set = as_set(args[0]);
    if (!set) return nullptr;
    PyObject* mark = deleted_mark();
    Ref elements = Ref::steal(PySequence_Fast(args[2], "the elements are no sequence"));
    Plan plan;
    if (!mark || !elements || !read_plan(args[1], elements.get(), plan)) return nullptr;
    if (set->fill || set->table != set->smalltable || set->hash != -1) {
        PyErr_SetString(PyExc_ValueError, "only an empty set is given a table");
        return nullptr;
    }
    setentry* entries = set->smalltable;
    if (plan.size > PySet_MINSIZE) {
        entries = PyMem_New(setentry, static_cast<size_t>(plan.size));
        if (!entries) return PyErr_NoMemory();
    }
    if (!make_entries(plan, entries, mark)) {
        if (entries != set->smalltable) {
            PyMem_Free(entries);
        } else {
            std::memset(entries, 0, sizeof(set->smalltable));
        }
        return nullptr;
    }
    set->table = entries;
    set->mask = plan.size - 1;
    set->used = plan.used;
    set->fill = plan.used + plan.deleted;
    if (plan.finger >= 0) set->finger = plan.finger;
    return Py_NewRef(args[0]);
}

PyObject* set_finger(PyObject*, PyObject* object) {
    PySetObject* set = as_set(object);
    return set ? PyLong_FromSsize_t(set->finger) : nullptr;
}

}  // namespace

PyMethodDef set_functions[] = {
    {"set_layout", set_layout, METH_O,
     "set_layout(s): a byte for each place of the set's table, then the elements in order"},
    {"set_table", set_table, METH_O,
     "set_table(s): (places, finger, hashes), all of the set's table but its elements"},
    {"set_finger", set_finger, METH_O,
     "set_finger(s): the place where the set's next pop() begins to look"},
    {"fill_table", as_method(fill_table), METH_FASTCALL,
     "fill_table(s, table, elements): give an empty set a table as set_table() describes it; returns the set"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace stator
