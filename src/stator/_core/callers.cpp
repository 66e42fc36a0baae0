// Frames for those who look: a call made by generated code shows the frames of the program that it stands for.
#include "functions.h"
#include <memory>

#include "context.h"
#include "frames.h"
#include "program.h"
#include "raising.h"
#include "recursion.h"
#include "ref.h"
#include "tracebacks.h"

namespace stator {

namespace {

// The frames of a call, on the thread's stack as long as it exists.
class Callers {
  public:
    explicit Callers(PyThreadState* thread) : thread_(thread), below_(top_frame(thread)) {}
    ~Callers() {
        ExceptionKept kept;
        for (Py_ssize_t i = count_; i-- > 0;) end_standing_frame(frames_[i]);
        set_top_frame(thread_, below_);
        for (Py_ssize_t i = count_; i-- > 0;) release_standing_frame(frames_[i]);
    }
    Callers(const Callers&) = delete;
    Callers& operator=(const Callers&) = delete;

    // Puts the frames on the stack; false with an exception set if they are not what called_from() takes.
    bool put(PyObject* frames, PyObject* values) {
        if (!PyTuple_Check(frames) || !PyTuple_Check(values)) return refused();
        Py_ssize_t count = PyTuple_GET_SIZE(frames);
        size_t size = 0;
        for (Py_ssize_t i = 0; i < count; i++) {
            if (!is_description(PyTuple_GET_ITEM(frames, i))) return refused();
            size += standing_frame_size(code_of(PyTuple_GET_ITEM(frames, i)));
        }
        memory_ = std::make_unique<PyObject*[]>(size);
        frames_ = std::make_unique<Frame*[]>(static_cast<size_t>(count));
        // The frame of the generated code that calls is none of the program's.
        Frame* back = below_;
        while (back && is_generated_code(frame_code(back))) back = frame_back(back);
        PyObject** place = memory_.get();
        Py_ssize_t used = 0;
        for (Py_ssize_t i = 0; i < count; i++) {
            PyObject* description = PyTuple_GET_ITEM(frames, i);
            back = begin(place, description, back);
            if (!fill(back, description, values, used)) return false;
            place += standing_frame_size(code_of(description));
        }
        set_top_frame(thread_, back);
        return true;
    }

  private:
    static PyCodeObject* code_of(PyObject* description) {
        return reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(PyTuple_GET_ITEM(description, 0)));
    }

    static bool is_description(PyObject* item) {
        if (!PyTuple_Check(item) || PyTuple_GET_SIZE(item) != 3 || !PyFunction_Check(PyTuple_GET_ITEM(item, 0)) ||
            !PyLong_Check(PyTuple_GET_ITEM(item, 1)) || !PyTuple_Check(PyTuple_GET_ITEM(item, 2))) {
            return false;
        }
        long offset = PyLong_AsLong(PyTuple_GET_ITEM(item, 1));
        return offset >= 0 && offset < Py_SIZE(code_of(item)) * 2;
    }

    static bool refused() {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "called_from() takes (function, offset, slots) and values");
        return false;
    }

    Frame* begin(PyObject** place, PyObject* description, Frame* back) {
        auto* frame = reinterpret_cast<Frame*>(place);
        int offset = static_cast<int>(PyLong_AsLong(PyTuple_GET_ITEM(description, 1)));
        begin_standing_frame(frame, PyTuple_GET_ITEM(description, 0), offset, back);
        return frames_[count_++] = frame;
    }

    static bool fill(Frame* frame, PyObject* description, PyObject* values, Py_ssize_t& used) {
        PyCodeObject* code = code_of(description);
        PyObject* filled = PyTuple_GET_ITEM(description, 2);
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(filled); i++) {
            Py_ssize_t slot = PyLong_AsSsize_t(PyTuple_GET_ITEM(filled, i));
            if (slot < 0 || slot >= code->co_nlocalsplus || used >= PyTuple_GET_SIZE(values)) return refused();
            set_frame_value(frame, slot, Py_NewRef(PyTuple_GET_ITEM(values, used++)));
        }
        return fill_free_variables(frame);
    }

    PyThreadState* thread_;
    Frame* below_;
    std::unique_ptr<PyObject*[]> memory_;
    std::unique_ptr<Frame*[]> frames_;
    Py_ssize_t count_ = 0;
};

PyObject* called_from(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
    if (count < 3) {
        PyErr_SetString(PyExc_TypeError, "called_from() takes frames, values and a function");
        return nullptr;
    }
    PyThreadState* thread = PyThreadState_Get();
    Callers callers(thread);
    if (!callers.put(args[0], args[1])) return nullptr;
    int before = calls_remaining(thread);
    int allowed = thread_context().calls_remaining;
    int left = allowed == kUnlimited ? before : allowed - static_cast<int>(PyTuple_GET_SIZE(args[0]));
    if (left < 0) {
        PyErr_SetString(PyExc_RecursionError, "maximum recursion depth exceeded");
        return nullptr;
    }
    MoreDepth as_the_program(thread, left - before);
    PyObject* result = PyObject_Vectorcall(args[2], args + 3, static_cast<size_t>(count - 3), names);
    if (!result) make_exception();
    return result;
}

PyObject* apply(PyObject*, PyObject* const* args, Py_ssize_t count) {
    if (count < 2 || count > 3 || !PyTuple_Check(args[1]) || (count == 3 && !PyDict_Check(args[2]))) {
        PyErr_SetString(PyExc_TypeError, "apply() takes a function, a tuple and perhaps a dict");
        return nullptr;
    }
    MoreDepth uncounted(PyThreadState_Get(), kOneCCall);
    return PyObject_Call(args[0], args[1], count == 3 ? args[2] : nullptr);
}

}  // namespace

PyMethodDef caller_functions[] = {
    {"called_from", as_method(called_from), METH_FASTCALL | METH_KEYWORDS,
     "called_from(frames, values, function, *args, **kwargs): the call, as if made by frames (function, offset, slots)"},
    {"apply", as_method(apply), METH_FASTCALL,
     "apply(function, args[, kwargs]): function(*args, **kwargs), which gets this very tuple if it is a C function"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace stator
