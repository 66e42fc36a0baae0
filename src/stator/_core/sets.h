// How the table of a set is laid out: what the order of its elements, and of all that comes out of it, depends on.
#pragma once
#include "ref.h"

namespace stator {

// set_layout(s) -> (places, *elements): a byte for each place of the table, and the elements in order
PyObject* set_layout(PyObject*, PyObject* set);

// set_table(s) -> (places, finger, hashes): all there is to know of a table but the elements, in the order of these
PyObject* set_table(PyObject*, PyObject* set);

// fill_table(s, (places, finger, hashes), elements) -> s: an empty set gets such a table; a finger of -1 leaves it
// where it is.  Fastcall
PyObject* fill_table(PyObject*, PyObject* const* args, Py_ssize_t count);

// set_finger(s) -> where the next pop() begins to look
PyObject* set_finger(PyObject*, PyObject* set);

}  // namespace stator
