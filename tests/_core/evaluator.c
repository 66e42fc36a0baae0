/* Another evaluation function (PEP 523): it is put over what there is, as torch._dynamo puts its own, and counts. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

static _PyFrameEvalFunction previous;
static long seen;
static int passes_on = 1;

static PyObject* evaluate(PyThreadState* thread, struct _PyInterpreterFrame* frame, int throwing) {
    seen++;
    _PyFrameEvalFunction next = passes_on && previous ? previous : _PyEval_EvalFrameDefault;
    return next(thread, frame, throwing);
}

void put_over(int passing) {
    PyInterpreterState* interpreter = PyInterpreterState_Get();
    passes_on = passing;
    if (_PyInterpreterState_GetEvalFrameFunc(interpreter) == evaluate) return;
    previous = _PyInterpreterState_GetEvalFrameFunc(interpreter);
    _PyInterpreterState_SetEvalFrameFunc(interpreter, evaluate);
}

void take_away(void) {
    PyInterpreterState* interpreter = PyInterpreterState_Get();
    if (_PyInterpreterState_GetEvalFrameFunc(interpreter) == previous) return;
    _PyInterpreterState_SetEvalFrameFunc(interpreter, previous ? previous : _PyEval_EvalFrameDefault);
    previous = NULL;
}

long frames_seen(void) { return seen; }

int is_on_top(void) { return _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get()) == evaluate; }

int is_alone(void) {
    return _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get()) == _PyEval_EvalFrameDefault;
}
