// The functions that Python finds in the module: a table in each file that has some, and the rest in module.cpp.
#pragma once
#include <Python.h>

namespace stator {

// A function of any calling convention, as a row of a table has it.
template <typename Function>
PyCFunction as_method(Function* function) {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

extern PyMethodDef caller_functions[], class_functions[], contents_functions[], dict_functions[], finalizer_functions[],
    keeping_functions[], probe_functions[], raising_functions[], recursion_functions[], region_functions[], set_functions[],
    tail_call_functions[], tensor_functions[], traceback_functions[], tracing_functions[];

}  // namespace stator
