// The threads of one block, one after the other.
//
// With HEADRACE_FIBERS (the program has barriers or shuffles), threads run on fibers: a fiber runs
// thread after thread until one has to wait; that one keeps the fiber, and another goes on. The
// order is turned round from block to block and from barrier to barrier, so that threads that rely
// on an order which nothing guarantees give wrong values.
#pragma once
#ifdef HEADRACE_FIBERS
#include <ucontext.h>
#endif

static uint3 threadIdx, blockIdx;
static dim3 blockDim, gridDim;
static const int warpSize = 32;

namespace emulated {

static const unsigned char POISON = 0xfd;
static const unsigned MAX_THREADS = 1024;

static jmp_buf escape;
static char message[1024];
static unsigned thread_count, current, block_number;

[[noreturn]] inline void fail(const char* format, ...) {
  va_list args;
  va_start(args, format);
  int n = vsnprintf(message, sizeof message, format, args);
  va_end(args);
  snprintf(message + n, sizeof message - n, " (block %u,%u,%u, thread %u,%u,%u)", blockIdx.x,
           blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z);
  longjmp(escape, 1);
}

inline void become(unsigned thread) {
  current = thread;
  threadIdx.x = thread % blockDim.x;
  threadIdx.y = thread / blockDim.x % blockDim.y;
  threadIdx.z = thread / (blockDim.x * blockDim.y);
}

#ifndef HEADRACE_FIBERS

template <typename Body> inline void run_block(Body body, char*, size_t) {
  if (block_number & 1) {
    for (unsigned t = thread_count; t-- > 0;) become(t), body();
    return;
  }
  for (threadIdx.z = 0; threadIdx.z < blockDim.z; threadIdx.z++)
    for (threadIdx.y = 0; threadIdx.y < blockDim.y; threadIdx.y++)
      for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++) body();
}

#else

enum State { NOT_STARTED, RUNNING, AT_BARRIER, IN_WARP, DONE };

struct Thread {
  State state;
  unsigned mask;              // of the lanes it waits for
  unsigned long long posted;  // what it hands to the other lanes
  struct Fiber* fiber;
};

struct Fiber {
  ucontext_t context;
  jmp_buf here;
  bool made;
};

static Thread threads[MAX_THREADS];
static unsigned long long visible[MAX_THREADS + 32];  // what lanes had posted when they went on
static Fiber fibers[MAX_THREADS];
static Fiber* idle[MAX_THREADS];
static Fiber* running;
static unsigned fibers_used, idle_count, started, turns;
static ucontext_t scheduler_context;
static jmp_buf scheduler;
static void (*thread_body)(void*);
static void* thread_argument;

// Jumps are much faster than contexts, which save the signal mask, but the address sanitizer has to
// be told of each change of the stack, and it knows contexts.
#ifdef __SANITIZE_ADDRESS__
inline void to_scheduler() { swapcontext(&running->context, &scheduler_context); }
inline void to_fiber(Fiber* f) { running = f, swapcontext(&scheduler_context, &f->context); }
#else
inline void to_scheduler() {
  if (!_setjmp(running->here)) _longjmp(scheduler, 1);
}
inline void to_fiber(Fiber* f) {
  running = f;
  if (_setjmp(scheduler)) return;
  if (f->made) _longjmp(f->here, 1);
  f->made = true;
  setcontext(&f->context);
}
#endif

inline void fiber_loop() {
  for (;;) {
    while (started < thread_count) {
      const unsigned k = started++;
      become(block_number & 1 ? thread_count - 1 - k : k);
      threads[current].state = RUNNING;
      threads[current].fiber = running;
      thread_body(thread_argument);
      threads[current].state = DONE;
    }
    idle[idle_count++] = running;
    to_scheduler();
  }
}

inline Fiber* new_fiber(char* stacks, size_t stack_bytes) {
  if (idle_count) return idle[--idle_count];
  Fiber* f = &fibers[fibers_used++];
  getcontext(&f->context);
  f->made = false;
  f->context.uc_stack.ss_sp = stacks + (f - fibers) * stack_bytes;
  f->context.uc_stack.ss_size = stack_bytes;
  f->context.uc_link = nullptr;
  memset(f->context.uc_stack.ss_sp, POISON, 64);
  makecontext(&f->context, fiber_loop, 0);
  return f;
}

inline void check_stack(Fiber* f) {
  const char* end = static_cast<char*>(f->context.uc_stack.ss_sp);
  for (int i = 0; i < 64; i++)
    if (static_cast<unsigned char>(end[i]) != POISON) fail("a thread needs more stack than it has");
}

// Lets the lanes of `warp` go on whose partners have all come.
inline bool release_lanes(unsigned warp, unsigned size) {
  unsigned waiting = 0, alive = 0, released = 0;
  for (unsigned l = 0; l < size; l++) {
    const Thread& t = threads[warp + l];
    if (t.state != DONE) alive |= 1u << l;
    else memset(&visible[warp + l], POISON, sizeof visible[0]);
    if (t.state == IN_WARP) waiting |= 1u << l;
  }
  for (unsigned l = 0; l < size; l++) {
    if (!(waiting >> l & 1) || released >> l & 1) continue;
    const unsigned mask = threads[warp + l].mask & alive;
    bool together = (mask & ~waiting) == 0;
    for (unsigned k = 0; together && k < size; k++)
      if (mask >> k & 1) together = threads[warp + k].mask == threads[warp + l].mask;
    if (together) released |= mask;
  }
  for (unsigned l = 0; l < size; l++) {
    if (!(released >> l & 1)) continue;
    visible[warp + l] = threads[warp + l].posted;
    threads[warp + l].state = RUNNING;
  }
  return released != 0;
}

inline bool release() {
  bool any = false;
  for (unsigned w = 0; w < thread_count; w += 32)
    any |= release_lanes(w, thread_count - w < 32 ? thread_count - w : 32);
  if (any) return true;
  for (unsigned t = 0; t < thread_count; t++) {
    if (threads[t].state == DONE) continue;
    if (threads[t].state != AT_BARRIER) {
      become(t);
      fail("divergent barrier: this thread waits for lanes that never come");
    }
    threads[t].state = RUNNING;
    any = true;
  }
  return any;
}

inline void run_threads(char* stacks, size_t stack_bytes) {
  started = 0;
  for (unsigned t = 0; t < thread_count; t++) threads[t].state = NOT_STARTED;
  memset(visible, POISON, sizeof visible);
  while (started < thread_count) to_fiber(new_fiber(stacks, stack_bytes));
  while (release()) {
    const bool back = turns++ & 1;
    for (unsigned k = 0; k < thread_count; k++) {
      const unsigned t = back ? thread_count - 1 - k : k;
      if (threads[t].state != RUNNING) continue;
      become(t);
      to_fiber(threads[t].fiber);
    }
  }
  for (unsigned i = 0; i < fibers_used; i++) check_stack(&fibers[i]);
}

template <typename Body> inline void run_block(Body body, char* stacks, size_t stack_bytes) {
  thread_argument = &body;
  thread_body = [](void* b) { (*static_cast<Body*>(b))(); };
  if (block_number == 0) fibers_used = idle_count = turns = 0;  // others have used the stacks
  run_threads(stacks, stack_bytes);
}

// Puts the thread aside until those it waits for have come.
inline void wait_for(State state, unsigned mask) {
  threads[current].state = state;
  threads[current].mask = mask;
  to_scheduler();
}

#endif

}  // namespace emulated
