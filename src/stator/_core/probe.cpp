#include "probe.h"

#include <dlfcn.h>
#include <structmember.h>

#include <cstring>
#include <string>

#include "functions.h"
#include "overrides.h"
#include "state.h"

namespace stator {

namespace {

std::string symbol_name;
void* symbol_library = nullptr;
thread_local const char* symbol_address = nullptr;  // each thread has its own variable

const char* thread_local_variable() {
    if (!symbol_address && symbol_library) symbol_address = static_cast<const char*>(dlsym(symbol_library, symbol_name.c_str()));
    return symbol_address;
}

template <class T> uint64_t call(const Question& question) {
    auto function = reinterpret_cast<T (*)(uint64_t)>(question.address);
    return static_cast<uint64_t>(function(question.argument));
}

bool ask(const Question& question, uint64_t* answer) {
    switch (question.kind) {
        case ProbeKind::kByteAtResult: {
            auto place = reinterpret_cast<const unsigned char* (*)()>(question.address)();
            *answer = place[question.argument];
            return true;
        }
        case ProbeKind::kResultOf1:
            *answer = call<uint8_t>(question);
            return true;
        case ProbeKind::kResultOf4:
            *answer = call<uint32_t>(question);
            return true;
        case ProbeKind::kResultOf8:
            *answer = call<uint64_t>(question);
            return true;
        case ProbeKind::kThreadLocal: {
            const char* variable = thread_local_variable();
            if (variable) std::memcpy(answer, variable + question.argument, sizeof(*answer));
            return variable != nullptr;
        }
    }
    return false;
}

Probe* as_probe(PyObject* object) { return reinterpret_cast<Probe*>(object); }

PyObject* probe_vectorcall(PyObject* object, PyObject* const*, size_t, PyObject*) {
    return PyBool_FromLong(probe_holds(as_probe(object)));
}

bool fill(Probe* self, PyObject* questions) {
    self->questions = new std::vector<Question>;
    self->answers = new std::vector<uint64_t>;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(questions); i++) {
        Question question;
        int kind;
        PyObject* item = PyTuple_GET_ITEM(questions, i);
        if (!PyTuple_Check(item) || !PyArg_ParseTuple(item, "iKK", &kind, &question.address, &question.argument)) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "a question is (kind, address, argument)");
            return false;
        }
        question.kind = static_cast<ProbeKind>(kind);
        uint64_t answer;
        if (!ask(question, &answer)) {
            PyErr_SetString(PyExc_LookupError, "no such thread-local variable, or kind of question");
            return false;
        }
        self->questions->push_back(question);
        self->answers->push_back(answer);
    }
    return true;
}

PyObject* probe_new(PyTypeObject* type, PyObject* args, PyObject*) {
    PyObject* questions;
    if (!PyArg_ParseTuple(args, "O!:Probe", &PyTuple_Type, &questions)) return nullptr;
    Ref made = Ref::steal(type->tp_alloc(type, 0));
    if (!made) return nullptr;
    as_probe(made.get())->vectorcall = probe_vectorcall;
    try {
        return fill(as_probe(made.get()), questions) ? made.release() : nullptr;
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
        return nullptr;
    }
}

void probe_dealloc(PyObject* object) {
    PyTypeObject* type = Py_TYPE(object);
    if (as_probe(object)->weakrefs) PyObject_ClearWeakRefs(object);
    delete as_probe(object)->questions;
    delete as_probe(object)->answers;
    type->tp_free(object);
    Py_DECREF(type);
}

PyObject* probe_answers(PyObject* object, void*) {
    const auto& answers = *as_probe(object)->answers;
    PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(answers.size()));
    for (size_t i = 0; tuple && i < answers.size(); i++) {
        PyObject* answer = PyLong_FromUnsignedLongLong(answers[i]);
        if (!answer) Py_CLEAR(tuple);
        if (answer) PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), answer);
    }
    return tuple;
}

PyMemberDef probe_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Probe, weakrefs), READONLY, nullptr},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Probe, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyGetSetDef probe_getset[] = {
    {"answers", probe_answers, nullptr, "what the functions reported when the probe was made", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyType_Slot probe_slots[] = {
    {Py_tp_doc, const_cast<char*>("Probe(questions)\n--\n\nTrue when called, if C functions report what they did "
                                  "when it was made.")},
    {Py_tp_new, reinterpret_cast<void*>(probe_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(probe_dealloc)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_members, probe_members},
    {Py_tp_getset, probe_getset},
    {0, nullptr},
};

}  // namespace

bool probe_holds(const Probe* probe) {
    try {
        for (size_t i = 0; i < probe->questions->size(); i++) {
            uint64_t answer;
            if (!ask((*probe->questions)[i], &answer) || answer != (*probe->answers)[i]) return false;
        }
        return true;
    } catch (...) {  // a function that refuses to answer
        return false;
    }
}

bool is_probe(PyObject* object) { return Py_IS_TYPE(object, state.probe_type); }

PyType_Spec probe_spec = {"stator._core.Probe", sizeof(Probe), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE, probe_slots};

namespace {

PyObject* set_thread_local_symbol(PyObject*, PyObject* args) {
    const char *path, *name;
    if (!PyArg_ParseTuple(args, "ss:set_thread_local_symbol", &path, &name)) return nullptr;
    symbol_library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    symbol_name = name;
    symbol_address = nullptr;
    return PyBool_FromLong(thread_local_variable() != nullptr);
}

PyObject* set_overrides(PyObject*, PyObject* args) {
    unsigned long long count_modes, get, set;
    if (!PyArg_ParseTuple(args, "KKK:set_overrides", &count_modes, &get, &set)) return nullptr;
    state.overrides = {reinterpret_cast<int64_t (*)()>(count_modes), reinterpret_cast<int (*)()>(get),
                       reinterpret_cast<void (*)(int)>(set)};
    Py_RETURN_NONE;
}

PyObject* are_overrides_off(PyObject*, PyObject*) { return PyBool_FromLong(overrides_are_off); }

}  // namespace

PyMethodDef probe_functions[] = {
    {"set_overrides", set_overrides, METH_VARARGS,
     "set_overrides(count_modes, get, set): the addresses of torch's functions about a thread's overrides"},
    {"are_overrides_off", are_overrides_off, METH_NOARGS,
     "Are torch's overrides off because guards are checked, or a call is traced, while modes are active?"},
    {"set_thread_local_symbol", set_thread_local_symbol, METH_VARARGS,
     "Name the thread-local variable that probes read; is there one of that name?"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace stator
