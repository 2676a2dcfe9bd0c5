/* Put before malloc by LD_PRELOAD, for starve.py: in the thread that asked for it, allocations number `first` to
 * `first + many - 1` from now on fail. And where a process dies of it: the library whose code that was, or "compiled"
 * for code that was compiled in memory. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);

static __thread long made = -1, from, until; /* -1: not counting */

void starve_begin(long first, long many);
long starve_end(void);

void starve_begin(long first, long many) {
    from = first;
    until = first + many;
    made = 0;
}

long starve_end(void) { /* how many there were */
    long count = made;
    made = -1;
    return count;
}

static int fails(void) {
    if (made < 0) return 0;
    made++;
    if (made < from || made >= until) return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size) { return fails() ? NULL : __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return fails() ? NULL : __libc_calloc(count, size); }
void *realloc(void *old, size_t size) { return fails() ? NULL : __libc_realloc(old, size); }

static char *place; /* of 200 bytes, in memory that the parent sees */
static struct sigaction before;

static void died(int number, siginfo_t *info, void *context) {
    const ucontext_t *where = context;
    Dl_info found;
    (void)info;
#if defined(__x86_64__)
    void *code = (void *)where->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    void *code = (void *)where->uc_mcontext.pc;
#else
    void *code = NULL;
#endif
    if (dladdr(code, &found) && found.dli_fname != NULL)
        strncpy(place, found.dli_fname, 199);
    else
        strcpy(place, "compiled");
    sigaction(number, &before, NULL); /* what follows is theirs: the instruction fails again */
}

void starve_watch(char *into);

void starve_watch(char *into) {
    struct sigaction ours;
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = died;
    ours.sa_flags = SA_SIGINFO;
    place = into;
    sigaction(SIGSEGV, &ours, &before);
}
