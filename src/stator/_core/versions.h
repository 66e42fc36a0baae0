// What differs between the supported versions of CPython, each fact under a name.
//
// Nothing else in the core asks for the version, but for one file a version that knows its frames (frames311.cpp and so
// on, of which setup.py compiles one). What only some versions declare is a macro, to be asked by #if; all others are
// constants, to be asked by `if constexpr`.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

// A dict says by a number which contents it has now (`ma_version_tag`); from 3.14 it only tells watchers of changes.
#define STATOR_DICTS_HAVE_VERSIONS (PY_VERSION_HEX < 0x030e0000)
// A frame's variables are tagged references (`_PyStackRef`), no plain pointers.
#define STATOR_VARIABLES_ARE_TAGGED (PY_VERSION_HEX >= 0x030e0000)
// A generator says of what type the frame is that it ends with; before, it ends with room for one.
#define STATOR_GENERATORS_HAVE_FRAMES (PY_VERSION_HEX >= 0x030e0000)

namespace stator {

// Writing an attribute that lies in the object's own memory gives the dict that shows it no new version, and in 3.13.0
// it tells no watcher.
inline constexpr bool kInlineValuesLackVersions = PY_VERSION_HEX >= 0x030d0000;

// `tp_version_tag` may be out of date unless a flag of the type says that it is valid; later it is 0 then.
inline constexpr bool kTypeVersionHasFlag = PY_VERSION_HEX < 0x030d0000;

// An exception set by C code may be a class and arguments, from which the first handler makes it; later it always is
// an instance.
inline constexpr bool kExceptionsAreMadeLate = PY_VERSION_HEX < 0x030c0000;

// A call of a C function counts as one of a Python function does; later C code has a limit of its own.
inline constexpr bool kCallsOfCCount = PY_VERSION_HEX < 0x030c0000;

// Looks an attribute up: 1 if it is there, 0 if it is not, for which no exception is made, -1 with an exception.
#if PY_VERSION_HEX >= 0x030d0000
inline int lookup_attribute(PyObject* object, PyObject* name, PyObject** found) {
    return PyObject_GetOptionalAttr(object, name, found);
}
#else
inline int lookup_attribute(PyObject* object, PyObject* name, PyObject** found) {
    return _PyObject_LookupAttr(object, name, found);
}
#endif

#if PY_VERSION_HEX >= 0x030c0000
inline Py_ssize_t request_code_extra_index(freefunc free) { return PyUnstable_Eval_RequestCodeExtraIndex(free); }
inline int code_get_extra(PyObject* code, Py_ssize_t index, void** extra) {
    return PyUnstable_Code_GetExtra(code, index, extra);
}
inline int code_set_extra(PyObject* code, Py_ssize_t index, void* extra) {
    return PyUnstable_Code_SetExtra(code, index, extra);
}
// A class's own dict, a new reference: that of a static type belongs to the interpreter.
inline PyObject* class_dict(PyObject* cls) { return PyType_GetDict(reinterpret_cast<PyTypeObject*>(cls)); }
// How many calls of Python functions the thread may still nest.
inline int& calls_remaining(PyThreadState* thread) { return thread->py_recursion_remaining; }
#else
inline Py_ssize_t request_code_extra_index(freefunc free) { return _PyEval_RequestCodeExtraIndex(free); }
inline int code_get_extra(PyObject* code, Py_ssize_t index, void** extra) {
    return _PyCode_GetExtra(code, index, extra);
}
inline int code_set_extra(PyObject* code, Py_ssize_t index, void* extra) {
    return _PyCode_SetExtra(code, index, extra);
}
inline PyObject* class_dict(PyObject* cls) { return Py_XNewRef(reinterpret_cast<PyTypeObject*>(cls)->tp_dict); }
inline int& calls_remaining(PyThreadState* thread) { return thread->recursion_remaining; }
#endif

// How deep C code may call itself; 0 where that counts as calls of Python functions do. From 3.14 the bytes of the C
// stack are what is counted: on a stack of the usual size they are enough for this depth.
#if PY_VERSION_HEX >= 0x030e0000
inline constexpr long kCRecursionLimit = 10000;
#elif PY_VERSION_HEX >= 0x030d0000
inline constexpr long kCRecursionLimit = Py_C_RECURSION_LIMIT;
#elif PY_VERSION_HEX >= 0x030c0000
inline constexpr long kCRecursionLimit = C_RECURSION_LIMIT;
#else
inline constexpr long kCRecursionLimit = 0;
#endif

// What a weak reference refers to, a new reference; null if it is gone.
#if PY_VERSION_HEX >= 0x030d0000
inline PyObject* weak_referent(PyObject* reference) {
    PyObject* found = nullptr;
    PyWeakref_GetRef(reference, &found);  // fails for what is no weak reference only
    return found;
}
#else
inline PyObject* weak_referent(PyObject* reference) {
    PyObject* found = PyWeakref_GET_OBJECT(reference);
    return found == Py_None ? nullptr : Py_NewRef(found);
}
#endif

}  // namespace stator
