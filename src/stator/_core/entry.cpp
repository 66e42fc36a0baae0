#include "entry.h"

#include <structmember.h>

#include "state.h"

namespace stator {

namespace {

Entry* as_entry(PyObject* self) { return reinterpret_cast<Entry*>(self); }

PyObject* entry_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    static const char* names[] = {"program", "target", "owner", "prologue", nullptr};
    PyObject *program, *target, *owner = Py_None, *prologue = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O|OO:Entry", const_cast<char**>(names), state.program_type,
                                     &program, &target, &owner, &prologue)) {
        return nullptr;
    }
    if (prologue != Py_None && !PyCallable_Check(prologue)) {
        PyErr_SetString(PyExc_TypeError, "an entry's prologue is a callable or None");
        return nullptr;
    }
    if (target != Py_None && !PyCallable_Check(target)) {
        PyErr_SetString(PyExc_TypeError, "an entry's target is a callable or None");
        return nullptr;
    }
    Entry* self = as_entry(type->tp_alloc(type, 0));
    if (!self) return nullptr;
    self->program = reinterpret_cast<Program*>(Py_NewRef(program));
    self->target = Py_NewRef(target);
    self->owner = Py_NewRef(owner);
    self->prologue = prologue == Py_None ? nullptr : Py_NewRef(prologue);
    return as_object(self);
}

int entry_traverse(PyObject* object, visitproc visit, void* arg) {
    Entry* self = as_entry(object);
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->program);
    Py_VISIT(self->target);
    Py_VISIT(self->owner);
    Py_VISIT(self->prologue);
    return 0;
}

// The program, the prologue and the target stay: who still holds the entry may be about to run it.  They take part in cycles
// only through containers that can be cleared.
int entry_clear(PyObject* object) {
    Py_CLEAR(as_entry(object)->owner);
    return 0;
}

void entry_dealloc(PyObject* object) {
    PyTypeObject* type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    entry_clear(object);
    Py_CLEAR(as_entry(object)->program);
    Py_CLEAR(as_entry(object)->target);
    Py_CLEAR(as_entry(object)->prologue);
    type->tp_free(object);
    Py_DECREF(type);
}

PyMemberDef entry_members[] = {
    {"program", T_OBJECT, offsetof(Entry, program), READONLY, "the guard program"},
    {"target", T_OBJECT, offsetof(Entry, target), READONLY, "what runs on a hit; None: the frame itself"},
    {"owner", T_OBJECT, offsetof(Entry, owner), 0, "free for the maker"},
    {"prologue", T_OBJECT, offsetof(Entry, prologue), READONLY,
     "called before the guards are checked, once in a dispatch; None: nothing is"},
    {"hits", T_ULONGLONG, offsetof(Entry, hits), READONLY, "how often its guards passed"},
    {"depth", T_INT, offsetof(Entry, depth), 0, "how deep the calls nest that the target stands for"},
    {"alone", T_BOOL, offsetof(Entry, alone), 0, "with no target: nothing that the frame calls is traced either"},
    {"drops_arguments", T_BOOL, offsetof(Entry, drops_arguments), 0,
     "a frame begun by a tail call gives its arguments up when the target begins"},
    {"released", T_ULONGLONG, offsetof(Entry, released), 0,
     "the arguments that the program lets go of before the target ends, a bit each"},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot entry_slots[] = {
    {Py_tp_doc, const_cast<char*>("Entry(program, target, owner=None, prologue=None)\n--\n\n"
                                  "Guards, and what runs when they pass.")},
    {Py_tp_new, reinterpret_cast<void*>(entry_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(entry_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(entry_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(entry_clear)},
    {Py_tp_members, entry_members},
    {0, nullptr},
};

}  // namespace

PyType_Spec entry_spec = {"stator._core.Entry", sizeof(Entry), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                          entry_slots};

}  // namespace stator
