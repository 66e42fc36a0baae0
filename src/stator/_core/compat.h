// Names that changed between CPython versions.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace stator {

#if PY_VERSION_HEX >= 0x030c0000
inline Py_ssize_t request_code_extra_index(freefunc free) { return PyUnstable_Eval_RequestCodeExtraIndex(free); }
inline int code_get_extra(PyObject* code, Py_ssize_t index, void** extra) {
    return PyUnstable_Code_GetExtra(code, index, extra);
}
inline int code_set_extra(PyObject* code, Py_ssize_t index, void* extra) {
    return PyUnstable_Code_SetExtra(code, index, extra);
}
// A class's own dict, a new reference.
inline PyObject* class_dict(PyObject* cls) { return PyType_GetDict(reinterpret_cast<PyTypeObject*>(cls)); }
#else
inline Py_ssize_t request_code_extra_index(freefunc free) { return _PyEval_RequestCodeExtraIndex(free); }
inline int code_get_extra(PyObject* code, Py_ssize_t index, void** extra) {
    return _PyCode_GetExtra(code, index, extra);
}
inline int code_set_extra(PyObject* code, Py_ssize_t index, void* extra) {
    return _PyCode_SetExtra(code, index, extra);
}
inline PyObject* class_dict(PyObject* cls) { return Py_XNewRef(reinterpret_cast<PyTypeObject*>(cls)->tp_dict); }
#endif

}  // namespace stator
