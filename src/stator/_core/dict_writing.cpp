// Writing to dicts without hashing or comparing their keys: both may run methods of the program.
#include "internal_dict.h"

#include "functions.h"
#include "hashes.h"

#include <unordered_map>
#include <vector>

namespace stator {

namespace {

// Stands in a dict for a key while the dict is written to: its hash is known, and it is equal to nothing else.
struct Mask {
    PyObject_HEAD
    PyObject* key;
    Py_hash_t hash;
};

Mask* as_mask(PyObject* object) { return reinterpret_cast<Mask*>(object); }

void dealloc_mask(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    Py_XDECREF(as_mask(self)->key);
    type->tp_free(self);
    Py_DECREF(type);
}

Py_hash_t hash_mask(PyObject* self) { return as_mask(self)->hash; }

PyObject* compare_masks(PyObject*, PyObject*, int operation) { return PyBool_FromLong(operation == Py_NE); }

PyType_Slot mask_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc_mask)},
    {Py_tp_hash, reinterpret_cast<void*>(hash_mask)},
    {Py_tp_richcompare, reinterpret_cast<void*>(compare_masks)},
    {0, nullptr},
};
PyType_Spec mask_spec = {"stator._core.Mask", sizeof(Mask), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, mask_slots};

PyTypeObject* mask_type() {
    static PyObject* type = nullptr;
    if (!type) type = PyType_FromSpec(&mask_spec);
    return reinterpret_cast<PyTypeObject*>(type);
}

Ref make_mask(PyObject* key, Py_hash_t hash) {
    PyTypeObject* type = mask_type();
    Ref made = Ref::steal(type ? type->tp_alloc(type, 0) : nullptr);
    if (made) {
        as_mask(made.get())->key = Py_NewRef(key);
        as_mask(made.get())->hash = hash;
    }
    return made;
}

// The places of a dict's keys that may be other objects than exact strings.
template <class Visit> bool each_key(PyDictObject* dict, Visit visit) {
    if (DK_IS_UNICODE(dict->ma_keys)) return true;
    PyDictKeyEntry* entries = DK_ENTRIES(dict->ma_keys);
    for (Py_ssize_t i = 0; i < dict->ma_keys->dk_nentries; i++) {
        if (entries[i].me_value && !PyUnicode_CheckExact(entries[i].me_key) && !visit(entries[i])) return false;
    }
    return true;
}

// What a call of write_dict() holds until all keys are back in their places: letting go may run any code.
class Writing {
  public:
    explicit Writing(PyObject* dict) : dict_(dict) {}

    bool read_hashes(PyObject* keys, PyObject* hashes) {
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(keys); i++) {
            PyObject* given = PySequence_Fast_GET_ITEM(hashes, i);
            PyObject* key = PySequence_Fast_GET_ITEM(keys, i);
            Py_hash_t hash = given == Py_None ? PyObject_Hash(key) : PyLong_AsSsize_t(given);
            if (hash == -1) {
                if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "-1 is no hash");
                return false;
            }
            remember_hash(key, hash);
            hashes_.push_back(hash);
        }
        return true;
    }

    bool run(PyObject* deleted, PyObject* keys, PyObject* items) {
        old_items_ = Ref::steal(PyDict_Values(dict_));
        bool done = old_items_ && mask_all() && write(deleted, keys, items);
        each_key(typed(), [](PyDictKeyEntry& entry) {
            if (Py_IS_TYPE(entry.me_key, mask_type())) std::swap(entry.me_key, as_mask(entry.me_key)->key);
            return true;
        });
        // Each mask now holds itself, but for those of keys that were deleted.
        for (Ref& mask : masks_) {
            if (as_mask(mask.get())->key == mask.get()) Py_CLEAR(as_mask(mask.get())->key);
        }
        return done;
    }

  private:
    PyDictObject* typed() { return reinterpret_cast<PyDictObject*>(dict_); }

    PyObject* mask_of(PyObject* key) {
        auto found = mask_by_key_.find(key);
        return found == mask_by_key_.end() ? nullptr : found->second;
    }

    PyObject* add_mask(PyObject* key, Py_hash_t hash) {
        Ref mask = make_mask(key, hash);
        if (!mask) return nullptr;
        mask_by_key_[key] = mask.get();
        masks_.push_back(std::move(mask));
        return masks_.back().get();
    }

    bool mask_all() {
        return each_key(typed(), [this](PyDictKeyEntry& entry) {
            PyObject* mask = add_mask(entry.me_key, entry.me_hash);
            if (!mask) return false;
            Py_SETREF(entry.me_key, Py_NewRef(mask));  // the mask holds the key
            return true;
        });
    }

    bool write(PyObject* deleted, PyObject* keys, PyObject* items) {
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(deleted); i++) {
            PyObject* key = PySequence_Fast_GET_ITEM(deleted, i);
            PyObject* mask = mask_of(key);
            if (PyDict_DelItem(dict_, mask ? mask : key) < 0) return false;
            mask_by_key_.erase(key);
        }
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(keys); i++) {
            PyObject* key = PySequence_Fast_GET_ITEM(keys, i);
            PyObject* mask = PyUnicode_CheckExact(key) ? key : mask_of(key);
            if (!mask) mask = add_mask(key, hashes_[static_cast<size_t>(i)]);
            if (!mask || PyDict_SetItem(dict_, mask, PySequence_Fast_GET_ITEM(items, i)) < 0) return false;
        }
        return true;
    }

    PyObject* dict_;
    std::vector<Py_hash_t> hashes_;
    std::vector<Ref> masks_;
    std::unordered_map<PyObject*, PyObject*> mask_by_key_;
    Ref old_items_;
};

bool expect_dict(PyObject* object) {
    if (PyDict_Check(object)) return true;
    PyErr_SetString(PyExc_TypeError, "expected a dict");
    return false;
}

PyObject* dict_hashes(PyObject*, PyObject* dict) {
    if (!expect_dict(dict)) return nullptr;
    Ref hashes = Ref::steal(PyList_New(0));
    PyObject *key, *item;
    PyDictKeysObject* table = reinterpret_cast<PyDictObject*>(dict)->ma_keys;
    Py_ssize_t at = 0;
    while (hashes && PyDict_Next(dict, &at, &key, &item)) {
        // An exact string's hash is taken without running any code; else `at` is behind the key's entry.
        Py_hash_t hash = DK_IS_UNICODE(table) ? PyObject_Hash(key) : DK_ENTRIES(table)[at - 1].me_hash;
        Ref number = Ref::steal(PyLong_FromSsize_t(hash));
        if (!number || PyList_Append(hashes.get(), number.get()) < 0) return nullptr;
    }
    return hashes ? PyList_AsTuple(hashes.get()) : nullptr;
}

PyObject* write_dict(PyObject*, PyObject* const* args, Py_ssize_t count) {
    if (count != 5) {
        PyErr_SetString(PyExc_TypeError, "write_dict() takes five arguments");
        return nullptr;
    }
    if (!expect_dict(args[0])) return nullptr;
    Ref lists[4];  // deleted, keys, items, hashes
    for (int i = 0; i < 4; i++) {
        lists[i] = Ref::steal(PySequence_Fast(args[i + 1], "keys, items and hashes are given as sequences"));
        if (!lists[i]) return nullptr;
    }
    Py_ssize_t assigned = PySequence_Fast_GET_SIZE(lists[1].get());
    if (PySequence_Fast_GET_SIZE(lists[2].get()) != assigned || PySequence_Fast_GET_SIZE(lists[3].get()) != assigned) {
        PyErr_SetString(PyExc_ValueError, "as many keys as items and hashes are needed");
        return nullptr;
    }
    Writing writing(args[0]);
    if (!writing.read_hashes(lists[1].get(), lists[3].get())) return nullptr;
    return writing.run(lists[0].get(), lists[1].get(), lists[2].get()) ? Py_NewRef(args[0]) : nullptr;
}

}  // namespace

PyMethodDef dict_functions[] = {
    {"dict_hashes", dict_hashes, METH_O,
     "dict_hashes(d): the hashes that the dict has stored with its keys, in order"},
    {"write_dict", as_method(write_dict), METH_FASTCALL,
     "write_dict(d, deleted, keys, items, hashes): delete and assign, no key being hashed or compared; returns the dict"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace stator
