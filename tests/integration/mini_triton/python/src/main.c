#include <Python.h>
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#ifdef MINI_NVIDIA
int mini_nvidia_cuda_version(void);
#endif
#ifdef MINI_AMD
const char *mini_amd_architecture(void);
#endif

static PyObject *backends(PyObject *self, PyObject *unused) {
  PyObject *found = PyDict_New();
#ifdef MINI_NVIDIA
  PyObject *cuda = PyLong_FromLong(mini_nvidia_cuda_version());
  PyDict_SetItemString(found, "nvidia", cuda);
  Py_DECREF(cuda);
#endif
#ifdef MINI_AMD
  PyObject *amd = PyUnicode_FromString(mini_amd_architecture());
  PyDict_SetItemString(found, "amd", amd);
  Py_DECREF(amd);
#endif
  return found;
}

// Whether a kernel may have this name. One breaks an assertion, another is read behind its end.
static PyObject *verify(PyObject *self, PyObject *given) {
  const char *name = PyUnicode_AsUTF8(given);
  int broken = strcmp(name, "breaks_a_rule") == 0, longer = strcmp(name, "is_too_long") == 0;
  assert(!broken && "kernels keep the rules");
  size_t size = strlen(name);
  char *copy = memcpy(malloc(size), name, size);
  volatile char last = copy[size - 1 + longer];
  free(copy);
  (void)last;
  return PyBool_FromLong(!broken && !longer);
}

static PyMethodDef methods[] = {
    {"verify", verify, METH_O, "Whether a kernel may have this name."},
    {"backends", backends, METH_NOARGS, "What was built in."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "libtriton", NULL, -1, methods,
                                        NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_libtriton(void) { return PyModule_Create(&definition); }
