/* kit._stamp: a preallocated buffer of stamps that NumPy views without copying.
 *
 * A stamp makes no Python object, touches no fresh memory and keeps the GIL. It also says whether it is past a limit:
 * a loop that must end in time then needs no clock but its stamps.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000 /* one build for 3.11 and later */
#include <Python.h>

#include <string.h>

#include "clock_read.h"

typedef struct {
    PyObject_HEAD
    int64_t *next; /* where the next stamp goes */
    int64_t *end;  /* one past the last place */
    int64_t limit; /* stamps above it are late */
    int64_t *first;
    Py_ssize_t exports; /* views alive */
    kit_clock_source source;
} StampBuffer;

static const char *const SOURCE_NAMES[] = {"monotonic_raw", "tsc", "cntvct"};
static const int SOURCE_COUNT = sizeof SOURCE_NAMES / sizeof SOURCE_NAMES[0];

/* Outside the stamp, so that the path taken every step stays short. */
static __attribute__((noinline, cold)) PyObject *refuse_stamp(StampBuffer *self, Py_ssize_t arguments) {
    if (arguments != 0) {
        PyErr_SetString(PyExc_TypeError, "a stamp takes no arguments");
    } else {
        PyErr_Format(PyExc_IndexError, "the stamp buffer is full: it was made for %zd stamps", self->end - self->first);
    }
    return NULL;
}

/* METH_FASTCALL although it takes no arguments: from 3.11 on the interpreter specializes such calls (CPython,
 * Python/specialize.c), which it does not do for METH_NOARGS. It measured faster than METH_NOARGS and than a callable
 * object with vectorcall. */
static PyObject *StampBuffer_stamp(StampBuffer *self, PyObject *const *Py_UNUSED(args), Py_ssize_t arguments) {
    if (__builtin_expect(self->next == self->end || arguments != 0, 0)) {
        return refuse_stamp(self, arguments);
    }
    int64_t now = kit_read_end(self->source);
    *self->next++ = now;
    return Py_NewRef(now > self->limit ? Py_True : Py_False);
}

/* From the last stamp, so that what runs until the next one is within the limit. */
static PyObject *StampBuffer_limit(StampBuffer *self, PyObject *argument) {
    long long units = PyLong_AsLongLong(argument);
    if (units == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (units < 0 || self->next == self->first) {
        PyErr_SetString(PyExc_ValueError, units < 0 ? "a limit is 0 or more" : "a limit begins with a stamp: make one");
        return NULL;
    }
    int64_t last = self->next[-1];
    self->limit = units == 0 || units > INT64_MAX - last ? INT64_MAX : last + units;
    Py_RETURN_NONE;
}

static int source_by_name(const char *name) {
    for (int source = 0; source < SOURCE_COUNT; source++) {
        if (strcmp(name, SOURCE_NAMES[source]) == 0) {
            if (!kit_clock_has_source((kit_clock_source)source)) {
                PyErr_Format(PyExc_ValueError, "this processor has no %s: use monotonic_raw", name);
                return -1;
            }
            return source;
        }
    }
    PyErr_Format(PyExc_ValueError, "source must be monotonic_raw, tsc or cntvct, not '%s'", name);
    return -1;
}

/* Written, not only reserved: a page's first touch would land in some step. */
static int64_t *touched_memory(Py_ssize_t capacity) {
    if (capacity <= 0) {
        PyErr_Format(PyExc_ValueError, "capacity must be at least 1 stamp, not %zd", capacity);
        return NULL;
    }
    int64_t *memory = NULL;
    if (capacity <= PY_SSIZE_T_MAX / (Py_ssize_t)sizeof *memory) {
        memory = PyMem_Malloc((size_t)capacity * sizeof *memory);
    }
    if (memory == NULL) {
        PyErr_Format(PyExc_MemoryError, "no memory for a buffer of %zd stamps", capacity);
        return NULL;
    }
    memset(memory, 0, (size_t)capacity * sizeof *memory);
    return memory;
}

static PyObject *StampBuffer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *keywords[] = {"capacity", "source", NULL};
    Py_ssize_t capacity;
    const char *name;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "ns:StampBuffer", keywords, &capacity, &name)) {
        return NULL;
    }
    int source = source_by_name(name);
    if (source < 0) {
        return NULL;
    }
    int64_t *memory = touched_memory(capacity);
    if (memory == NULL) {
        return NULL;
    }
    StampBuffer *self = (StampBuffer *)PyType_GenericAlloc(type, 0);
    if (self == NULL) {
        PyMem_Free(memory);
        return NULL;
    }
    self->source = (kit_clock_source)source;
    self->first = self->next = memory;
    self->limit = INT64_MAX;
    self->end = memory + capacity;
    return (PyObject *)self;
}

static void StampBuffer_dealloc(StampBuffer *self) {
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    PyMem_Free(self->first);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* A view has the stamps made so far; later ones go behind it. Its shape lives as long as the view. */
static int StampBuffer_getbuffer(StampBuffer *self, Py_buffer *view, int flags) {
    view->obj = NULL;
    if (flags & PyBUF_WRITABLE) {
        PyErr_SetString(PyExc_BufferError, "stamps are read-only");
        return -1;
    }
    Py_ssize_t *shape = PyMem_Malloc(sizeof *shape);
    if (shape == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    *shape = self->next - self->first;
    view->buf = self->first;
    view->len = *shape * (Py_ssize_t)sizeof(int64_t);
    view->itemsize = sizeof(int64_t);
    view->readonly = 1;
    view->ndim = 1;
    view->format = (flags & PyBUF_FORMAT) ? "q" : NULL;
    view->shape = (flags & PyBUF_ND) ? shape : NULL;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? &view->itemsize : NULL;
    view->suboffsets = NULL;
    view->internal = shape;
    view->obj = Py_NewRef((PyObject *)self);
    self->exports++;
    return 0;
}

static void StampBuffer_releasebuffer(StampBuffer *self, Py_buffer *view) {
    PyMem_Free(view->internal);
    self->exports--;
}

static PyObject *StampBuffer_clear(StampBuffer *self, PyObject *Py_UNUSED(ignored)) {
    if (self->exports > 0) {
        PyErr_SetString(PyExc_BufferError, "the stamps are still viewed: copy or drop the views before clearing");
        return NULL;
    }
    self->next = self->first;
    self->limit = INT64_MAX;
    Py_RETURN_NONE;
}

static PyObject *get_count(StampBuffer *self, void *Py_UNUSED(closure)) {
    return PyLong_FromSsize_t(self->next - self->first);
}

static PyObject *get_capacity(StampBuffer *self, void *Py_UNUSED(closure)) {
    return PyLong_FromSsize_t(self->end - self->first);
}

static PyObject *get_source(StampBuffer *self, void *Py_UNUSED(closure)) {
    return PyUnicode_FromString(SOURCE_NAMES[self->source]);
}

static PyGetSetDef getters[] = {
    {"count", (getter)get_count, NULL, "Stamps made since the buffer was made or cleared.", NULL},
    {"capacity", (getter)get_capacity, NULL, "Stamps it has room for.", NULL},
    {"source", (getter)get_source, NULL, "What a stamp reads: monotonic_raw, tsc or cntvct.", NULL},
    {0},
};

static PyMethodDef methods[] = {
    {"stamp", (PyCFunction)(void (*)(void))StampBuffer_stamp, METH_FASTCALL,
     "Read the clock now; return whether it is past the limit. IndexError when full."},
    {"limit", (PyCFunction)StampBuffer_limit, METH_O,
     "Let stamps be late from so many units after the last one on; 0: never. ValueError without a stamp."},
    {"clear", (PyCFunction)StampBuffer_clear, METH_NOARGS, "Forget the stamps. BufferError while a view is alive."},
    {0},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "StampBuffer(capacity, source)\n--\n\n"
                "A view (numpy.asarray) holds int64 nanoseconds for monotonic_raw, ticks for tsc and "
                "cntvct."},
    {Py_tp_new, StampBuffer_new},
    {Py_tp_dealloc, StampBuffer_dealloc},
    {Py_tp_getset, getters},
    {Py_tp_methods, methods},
    {Py_bf_getbuffer, StampBuffer_getbuffer},
    {Py_bf_releasebuffer, StampBuffer_releasebuffer},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "kit._stamp.StampBuffer",
    .basicsize = sizeof(StampBuffer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

static int add_types(PyObject *module) {
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    if (type == NULL) {
        return -1;
    }
    int result = PyModule_AddType(module, (PyTypeObject *)type);
    Py_DECREF(type);
    return result;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, add_types},
    {0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "kit._stamp",
    .m_doc = "Stamps without a Python object, in a buffer that NumPy views.",
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__stamp(void) {
    return PyModuleDef_Init(&module);
}
