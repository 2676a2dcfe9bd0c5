/* How the library comes to a Python: it starts that of the environment named below, once, or joins the one that its
 * host runs. Whatever fails is a status and a message, never an exit; nothing of the host's is changed: no signal
 * handlers, no locale, no streams, none of its environment is read by Python.
 *
 * library.py puts FASTDP_EXECUTABLE and FASTDP_LIBPYTHON before this, fastdp.h, and the fronts of the functions after it.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FASTDP_TEXT 1024

static __thread char fastdp_message[FASTDP_TEXT]; /* of the calling thread */

static pthread_mutex_t fastdp_lock = PTHREAD_MUTEX_INITIALIZER;
enum { FASTDP_UNKNOWN, FASTDP_READY, FASTDP_FAILED };
static int fastdp_state = FASTDP_UNKNOWN;
static char fastdp_reason[FASTDP_TEXT]; /* why it failed */
static pid_t fastdp_owner = 0;          /* the process that we started Python in; 0 if the host did */

static int cffi_start_python(void);

void fastdp_set_error(const char *text) { snprintf(fastdp_message, FASTDP_TEXT, "%s", text); }

/* Called by the code that runs first in Python, when fastdp cannot be used. */
void fastdp_refuse(const char *text) { snprintf(fastdp_reason, FASTDP_TEXT, "%s", text); }

int fastdp_started_python(void) { return fastdp_owner != 0; }

const char *fastdp_last_error(void) { return fastdp_message; }

static int fastdp_fail(const char *what, const char *why) {
    snprintf(fastdp_reason, FASTDP_TEXT, "%s%s", what, why);
    return FASTDP_FAILED;
}

/* Python's module of signals takes over SIGINT when it is first imported, whatever its configuration says: that import
 * happens here, and SIGINT goes back to the host. */
static void fastdp_keep_interrupts(void) {
    struct sigaction theirs;
    int known = sigaction(SIGINT, NULL, &theirs) == 0;
    Py_XDECREF(PyImport_ImportModule("_signal"));
    PyErr_Clear();
    if (known)
        sigaction(SIGINT, &theirs, NULL);
}

static int fastdp_run_python(void) {
    PyPreConfig before;
    PyConfig config;
    PyStatus status;

    /* Extension modules look for Python's functions among the global symbols, where a host that opened this library
     * by itself (dlopen, a plug-in) has not put them. */
    if (dlopen(FASTDP_LIBPYTHON, RTLD_NOW | RTLD_GLOBAL) == NULL)
        return fastdp_fail("Python's shared library: ", dlerror());

    PyPreConfig_InitIsolatedConfig(&before);
    before.utf8_mode = 1; /* names of files do not depend on the host's locale, which is left alone */
    status = Py_PreInitialize(&before);
    if (!PyStatus_Exception(status)) {
        PyConfig_InitIsolatedConfig(&config);
        config.install_signal_handlers = 0;
        status = PyConfig_SetBytesString(&config, &config.program_name, FASTDP_EXECUTABLE);
        if (!PyStatus_Exception(status))
            status = Py_InitializeFromConfig(&config);
        PyConfig_Clear(&config);
    }
    if (PyStatus_Exception(status))
        return fastdp_fail("the Python of " FASTDP_EXECUTABLE " does not start: ",
                           status.err_msg ? status.err_msg : "it wants to exit");
    fastdp_owner = getpid();
    fastdp_keep_interrupts();
    PyEval_SaveThread(); /* callers take Python's lock when they need it */
    return FASTDP_READY;
}

/* cffi's own start prints where this cannot be imported, and says no more. */
static int fastdp_find_cffi(void) {
    PyGILState_STATE lock = PyGILState_Ensure();
    PyObject *module = PyImport_ImportModule("_cffi_backend");
    int found = module != NULL;
    Py_XDECREF(module);
    PyErr_Clear();
    PyGILState_Release(lock);
    if (!found)
        return fastdp_fail("cffi is missing in the environment of " FASTDP_EXECUTABLE, "");
    return FASTDP_READY;
}

static int fastdp_start_cffi(void) {
    PyGILState_STATE lock = PyGILState_Ensure(); /* so that nobody gives the type another tag */
    int failed;

#if PY_VERSION_HEX < 0x030C0000
    PyType_Modified(&PyCapsule_Type); /* cffi takes its version tag for a lock, and aborts where Python has set one */
#endif
    failed = cffi_start_python() != 0;
    PyGILState_Release(lock);
    return failed;
}

static int fastdp_start(void) {
    const char *ours = PY_VERSION, *theirs = Py_GetVersion();
    size_t length = strchr(strchr(ours, '.') + 1, '.') + 1 - ours; /* of "3.11." */

    if (strncmp(ours, theirs, length) != 0)
        return fastdp_fail("made for Python " PY_VERSION ", and the host runs another: ", theirs);
    if (!Py_IsInitialized() && fastdp_run_python() == FASTDP_FAILED)
        return FASTDP_FAILED;
    if (fastdp_find_cffi() == FASTDP_FAILED)
        return FASTDP_FAILED;
    if (fastdp_start_cffi())
        return fastdp_fail("cffi does not start; its report is on standard error", "");
    return fastdp_reason[0] ? FASTDP_FAILED : FASTDP_READY;
}

static int fastdp_begin(void) {
    if (__atomic_load_n(&fastdp_state, __ATOMIC_ACQUIRE) == FASTDP_UNKNOWN) {
        /* who waits here must not hold Python's lock, which the one who starts may need */
        PyThreadState *held = Py_IsInitialized() && PyGILState_Check() ? PyEval_SaveThread() : NULL;
        pthread_mutex_lock(&fastdp_lock);
        if (fastdp_state == FASTDP_UNKNOWN)
            __atomic_store_n(&fastdp_state, fastdp_start(), __ATOMIC_RELEASE);
        pthread_mutex_unlock(&fastdp_lock);
        if (held != NULL)
            PyEval_RestoreThread(held);
    }
    if (fastdp_state == FASTDP_FAILED) {
        fastdp_set_error(fastdp_reason);
        return FASTDP_START;
    }
    if (fastdp_owner != 0 && fastdp_owner != getpid()) {
        fastdp_set_error("this process was forked after Python had started in its parent: must be before");
        return FASTDP_START;
    }
    return FASTDP_OK;
}

static int inner_kernels(fastdp_kernel_table *table);

const fastdp_kernel_table *fastdp_kernels(void) {
    static fastdp_kernel_table table;
    static int filled = 0;

    if (fastdp_begin() != FASTDP_OK)
        return NULL;
    if (!__atomic_load_n(&filled, __ATOMIC_ACQUIRE)) { /* whoever comes together writes the same */
        if (inner_kernels(&table) != FASTDP_OK)
            return NULL;
        __atomic_store_n(&filled, 1, __ATOMIC_RELEASE);
    }
    return &table;
}
