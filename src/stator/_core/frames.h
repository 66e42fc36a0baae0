// All that depends on how a CPython version lays out and leaves a frame; implemented once per version.
#pragma once
#include <memory>

#include "ref.h"

struct _PyInterpreterFrame;

namespace stator {

using Frame = _PyInterpreterFrame;

PyCodeObject* frame_code(Frame* frame);   // borrowed
PyObject* frame_function(Frame* frame);   // borrowed
bool frame_is_on_thread_stack(Frame* frame);  // not a generator's

// Room for the values of a frame's variables, where the version keeps them in another form.
class ValueRoom {
  public:
    ValueRoom() = default;
    ValueRoom(const ValueRoom&) = delete;
    ValueRoom& operator=(const ValueRoom&) = delete;
    PyObject** reserve(Py_ssize_t count) {
        if (count <= kInline) return inline_;
        more_ = std::make_unique<PyObject*[]>(static_cast<size_t>(count));
        return more_.get();
    }

  private:
    static constexpr Py_ssize_t kInline = 16;
    PyObject* inline_[kInline];
    std::unique_ptr<PyObject*[]> more_;
};

// The values of a frame's first variables, borrowed (null: it has none): arguments, then other locals, cells and free
// variables. They lie in the frame or in the room.
PyObject* const* frame_values(Frame* frame, Py_ssize_t count, ValueRoom& room);
// Gives a variable a value (stolen, or null) in place of the one it has.
void set_frame_value(Frame* frame, Py_ssize_t index, PyObject* value);

// Does the end of a generator, a coroutine or an asynchronous generator do anything but let go of what it holds?  It runs
// code where it is suspended within a `try` or a `with`, and warns of a coroutine that nobody has awaited.
bool closing_shows(PyObject* suspended);

// Makes a frame that has not started return `result` (stolen), or raise what is set if it is null, exactly as if
// its own bytecode had done so; what the evaluation function has to return comes back.  `return_stub` caches, per
// code object, what the version needs for it.
PyObject* leave_frame(PyThreadState* thread, Frame* frame, PyObject* result, PyObject** return_stub);

// Puts a frame at the instruction at a byte offset.
void place_frame(Frame* frame, int offset);

// Moves a frame object that PyFrame_New has made to the instruction at a byte offset, as if it had ended there, called
// by `back` (or null) and with `variables` (a dict, or null); false with an exception set if memory has run out.
bool end_frame_at(PyFrameObject* object, int offset, PyObject* back, PyObject* variables);

// The thread's innermost frame, and the one that called a frame (CPython's own entries on the C stack left out).
Frame* top_frame(PyThreadState* thread);
void set_top_frame(PyThreadState* thread, Frame* frame);
Frame* frame_back(Frame* frame);

// Frames that are not executed, but that those called meanwhile find above them; in memory of the caller's.
size_t standing_frame_size(PyCodeObject* code);  // in pointers
// Begins one, of a function, at a byte offset, without variables; it owns the function, and what these are given.
void begin_standing_frame(Frame* frame, PyObject* function, int offset, Frame* back);
// Ends it while it is still on the stack: a frame object that others have come to hold outlives it.
void end_standing_frame(Frame* frame);
void release_standing_frame(Frame* frame);
// Cells for the free variables that have got none; false with an exception set if memory has run out.
bool fill_free_variables(Frame* frame);

// Is there too little C stack left for evaluating frames through the hook?
bool c_recursion_is_low(PyThreadState* thread);

}  // namespace stator
