#include "internal_dict.h"

#include "dicts.h"
#include "versions.h"

namespace stator {

namespace {

PyDictObject* as_dict(PyObject* object) { return reinterpret_cast<PyDictObject*>(object); }

}  // namespace

#if STATOR_DICTS_HAVE_VERSIONS
uint64_t dict_version(PyObject* dict) {
    if (kInlineValuesLackVersions && as_dict(dict)->ma_values) return 0;
    return as_dict(dict)->ma_version_tag;
}
#else
namespace {

// A version stands in those bits of the dict's tag that CPython uses only in its free-threaded build. It is given when
// it is asked for, and the dict is watched from then on until the first change, which takes it away.
constexpr int kVersionShift = DICT_MAX_WATCHERS + DICT_WATCHED_MUTATION_BITS;

int watcher = -1;

int take_version_away(PyDict_WatchEvent, PyObject* dict, PyObject*, PyObject*) {
    as_dict(dict)->_ma_watcher_tag &= (uint64_t{1} << kVersionShift) - 1;
    return PyDict_Unwatch(watcher, dict);
}

// The interpreter has a few watchers only: where others have taken them all, no dict has a version.
bool find_watcher() {
    static const bool found = (watcher = PyDict_AddWatcher(take_version_away)) >= 0;
    if (!found) PyErr_Clear();
    return found;
}

}  // namespace

uint64_t dict_version(PyObject* dict) {
    static uint64_t last = 0;
    if (uint64_t version = as_dict(dict)->_ma_watcher_tag >> kVersionShift) return version;
    if (!find_watcher() || PyDict_Watch(watcher, dict) < 0) return 0;
    as_dict(dict)->_ma_watcher_tag |= ++last << kVersionShift;
    return last;
}
#endif

bool has_plain_keys(PyObject* dict) { return DK_IS_UNICODE(as_dict(dict)->ma_keys); }

}  // namespace stator
