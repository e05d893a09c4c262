// What the shared library of a kernel exports: its parameters and its launch; and what a broken rule
// does. g++ puts in the checks (-fsanitize=alignment,bounds,...), this file what they call.
#pragma once

namespace emulated {

static char dynamic_shared_memory[(60 << 10) + 16] __attribute__((aligned(1024)));

template <typename T> constexpr char kind_of() {
  using V = std::remove_cv_t<T>;
  if constexpr (std::is_pointer_v<V>) return 'p';
  else if constexpr (std::is_same_v<V, bool>) return 'b';
  else if constexpr (std::is_floating_point_v<V> || std::is_same_v<V, half>) return 'f';
  else if constexpr (std::is_integral_v<V>) return std::is_signed_v<V> ? 'i' : 'u';
  else return 'V';
}

template <typename T> inline T argument(const void* address) {
  std::remove_const_t<T> value;
  memcpy(&value, address, sizeof value);
  return value;
}

template <auto Function> struct Entry;
template <typename... Args, void (*Function)(Args...)> struct Entry<Function> {
  static constexpr int count = sizeof...(Args);
  static constexpr char kinds[] = {kind_of<Args>()..., 0};
  static constexpr unsigned sizes[] = {unsigned(sizeof(Args))..., 0};

  template <size_t... I> static inline void call(void** args, std::index_sequence<I...>) {
    Function(argument<Args>(args[I])...);
  }

  static const char* launch(const unsigned* grid, const unsigned* block, size_t shared_bytes,
                            void** args, char* stacks, size_t stack_bytes) {
    gridDim = dim3(grid[0], grid[1], grid[2]);
    blockDim = dim3(block[0], block[1], block[2]);
    thread_count = block[0] * block[1] * block[2];
    block_number = 0;
    if (setjmp(escape)) return message;
    for (blockIdx.z = 0; blockIdx.z < gridDim.z; blockIdx.z++)
      for (blockIdx.y = 0; blockIdx.y < gridDim.y; blockIdx.y++)
        for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++) {
          if (shared_bytes) memset(dynamic_shared_memory, POISON, shared_bytes);
          run_block([args] { call(args, std::index_sequence_for<Args...>{}); }, stacks,
                    stack_bytes);
          block_number++;
        }
    return nullptr;
  }
};

struct Place {
  const char* file;
  unsigned line, column;
};
struct TypeMismatch {
  Place place;
  const void* type;
  unsigned char log_alignment;
  unsigned char kind;
};

}  // namespace emulated

#define DYNAMIC_SHARED(T, name)                                                          \
  T* const name = reinterpret_cast<T*>(emulated::dynamic_shared_memory)

#define __trap() emulated::fail("__trap()")

extern "C" {
void __ubsan_handle_type_mismatch_v1_abort(
    emulated::TypeMismatch* found, size_t address) {
  emulated::fail("line %u: access to address %#zx, which is not aligned to %u bytes",
                 found->place.line, address, 1u << found->log_alignment);
}
void __ubsan_handle_out_of_bounds_abort(
    emulated::Place* place, size_t index) {
  emulated::fail("line %u: index %zd is outside of the array", place->line, index);
}
void __ubsan_handle_divrem_overflow_abort(
    emulated::Place* place, size_t, size_t) {
  emulated::fail("line %u: division by zero, or its result does not fit", place->line);
}
void __ubsan_handle_shift_out_of_bounds_abort(
    emulated::Place* place, size_t, size_t bits) {
  emulated::fail("line %u: shift by %zd bits", place->line, bits);
}
}

#define EMULATED_API extern "C" __attribute__((visibility("default")))
#define EMULATED_EXPORT(most_threads, ...)                                               \
  EMULATED_API unsigned headrace_most_threads() { return most_threads; }                 \
  EMULATED_API const char* headrace_kinds() { return emulated::Entry<__VA_ARGS__>::kinds; } \
  EMULATED_API const unsigned* headrace_sizes() {                                        \
    return emulated::Entry<__VA_ARGS__>::sizes;                                          \
  }                                                                                      \
  EMULATED_API const char* headrace_launch(const unsigned* grid, const unsigned* block,  \
                                           size_t shared_bytes, void** args,             \
                                           char* stacks, size_t stack_bytes) {           \
    return emulated::Entry<__VA_ARGS__>::launch(grid, block, shared_bytes, args, stacks, \
                                                stack_bytes);                            \
  }
