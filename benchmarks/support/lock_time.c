/* How long threads hold the interpreter's lock, by their own processor time.

   CPython signals one condition when a thread has taken the lock, and another one when it drops it,
   both while it holds the mutex that guards the lock. This library, loaded ahead of the C library
   (LD_PRELOAD), sees all signals. It is told which two they are by dropping the lock once and taking
   it again. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

void *PyEval_SaveThread(void);
void PyEval_RestoreThread(void *);

static enum { NOTHING, DROP, TAKE } awaited;
static pthread_cond_t *dropped, *taken;
static long long held_ns, takes;
static _Thread_local long long since;

static long long processor_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int pthread_cond_signal(pthread_cond_t *condition) {
    static int (*original)(pthread_cond_t *);
    if (!original) {
        /* The one without a version would be an older one, of another layout. */
        void *found = dlvsym(RTLD_NEXT, "pthread_cond_signal", "GLIBC_2.3.2");
        original = found ? found : dlsym(RTLD_NEXT, "pthread_cond_signal");
    }
    if (awaited == DROP) {
        dropped = condition;
        awaited = NOTHING;
    } else if (awaited == TAKE) {
        taken = condition;
        awaited = NOTHING;
    } else if (condition == taken) {
        takes++;
        since = processor_ns();
    } else if (condition == dropped) {
        held_ns += processor_ns() - since;
    }
    return original(condition);
}

/* To be called once, by a program with one thread, which holds the lock. */
void lock_time_begin(void) {
    awaited = DROP;
    void *state = PyEval_SaveThread();
    awaited = TAKE;
    PyEval_RestoreThread(state);
    since = processor_ns();
}

/* Nanoseconds since then, and how often the lock was taken; the caller holds it. */
long long lock_time_held(void) { return held_ns + processor_ns() - since; }
long long lock_time_takes(void) { return takes; }
