#include <Python.h>

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

static PyMethodDef methods[] = {
    {"backends", backends, METH_NOARGS, "What was built in."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "libtriton", NULL, -1, methods,
                                        NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_libtriton(void) { return PyModule_Create(&definition); }
