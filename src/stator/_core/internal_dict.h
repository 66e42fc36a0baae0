// CPython's internal header of dicts, to be included before all others, with its own sins forgiven.
#pragma once
#define Py_BUILD_CORE 1
#define PY_SSIZE_T_CLEAN
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include <Python.h>
#undef HAVE_STD_ATOMIC  // <stdatomic.h> is C; the compiler's own atomics are laid out alike
extern "C" {
#include <internal/pycore_dict.h>
}
#pragma GCC diagnostic pop
