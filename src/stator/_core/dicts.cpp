#include "internal_dict.h"

#include "dicts.h"

namespace stator {

uint64_t dict_version(PyObject* dict) {
    auto* self = reinterpret_cast<PyDictObject*>(dict);
#if PY_VERSION_HEX >= 0x030d0000
    // an object's inline values are written without a new version for the dict that shows them
    if (self->ma_values) return 0;
#endif
    return self->ma_version_tag;
}

bool has_plain_keys(PyObject* dict) { return DK_IS_UNICODE(reinterpret_cast<PyDictObject*>(dict)->ma_keys); }

}  // namespace stator
