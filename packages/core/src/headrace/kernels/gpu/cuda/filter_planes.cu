// Filters planes of pixels down and across in one go; what lies between stays in shared memory.
//
// A block goes down a strip of one plane, a few rows at a time. Each thread filters down one column
// of one channel, whose elements it reads once and keeps in registers as long as they are needed;
// neighbours read side by side. The sums go to shared memory, where each channel has rows of its
// own. Then threads filter 8 neighbours of a channel across, and the results are stored row by row.
#include "filter.cuh"
#include "packed_rows.cuh"

constexpr int ACROSS = 8;
#include "filter:MOST_ROWS"

#include "filter:PlanesSample"

__device__ constexpr int threads_of(int channels, int columns) {
  return (columns * channels + 31) / 32 * 32;
}

// Rows at a time: registers of a thread hold them, and `Reach` more on both sides.
#include "filter:ROWS_OF_LONG"
#include "filter:ROWS_OF_SHORT"
#include "filter:SHORT_REACH"
template <int Reach> constexpr int rows_of = Reach <= SHORT_REACH ? ROWS_OF_SHORT : ROWS_OF_LONG;

// Blocks that are to share a multiprocessor, which says how many registers a thread may have: no
// more than it needs.
template <int Channels, int Reach, int Width> __device__ constexpr int blocks_of() {
  constexpr int registers = Reach <= 4 ? 64 : Reach <= 8 ? 72 : 128;
  constexpr int blocks = 65536 / (registers * threads_of(Channels, Width + 2 * Reach));
  return blocks > 1 ? blocks : 1;
}
template <int Channels, int Reach, int Width>
constexpr int BLOCKS = blocks_of<Channels, Reach, Width>();

// What lies between the steps: (channel, row, column).
template <int Channels, int Reach, int Width> struct Between {
  static constexpr int rows = rows_of<Reach>;
  static constexpr int margin = (Reach + 3) / 4 * 4;  // columns on both sides: whole vectors
  // Rows are an odd number of vectors of 16 bytes apart: eight threads that read one each, one
  // below the other, use all banks. So do threads that write neighbours in all channels.
  static constexpr int pitch = Width + 2 * margin + 4;
  static constexpr int plane = rows * pitch + (32 / Channels + 3) / 4 * 4 % 32;
  static_assert(Width % ACROSS == 0, "vectors are aligned");
};

// Sums around `Count` elements, of which the first is `values[Margin]`, from the centre to the
// farthest. All loops have constant bounds, so that values stay in registers. Where all windows
// reach as far, there is nothing to ask at each step.
template <int Count, int Reach, bool Exact, int Margin>
__device__ __forceinline__ void weigh(const float (&values)[Count + 2 * Margin],
                                      const float* weights, int reach, float (&sums)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; i++) sums[i] = weights[0] * values[Margin + i];
#pragma unroll
  for (int k = 1; k <= Reach; k++) {
    if (!Exact && k > reach) break;
    const float weight = weights[k];
#pragma unroll
    for (int i = 0; i < Count; i++) {
      sums[i] = __fmaf_rn(weight, values[Margin + i - k] + values[Margin + i + k], sums[i]);
    }
  }
}

// Whether bytes are floats as they are, 2^-149 times as large: weights of rows are multiplied by 2^126
// for that, those of columns by the rest. Powers of two change no bit of a sum, unless it is much
// smaller than what integers are rounded to.
template <typename In, typename Out>
constexpr bool IN_PLACE = same<In, uint8> && Limits<Out>::is_integer;
template <typename In, typename Out> constexpr float ROW_SCALE = IN_PLACE<In, Out> ? 0x1p126f : 1.0f;
template <typename In, typename Out>
constexpr float COLUMN_SCALE = IN_PLACE<In, Out> ? 0x1p23f : 1.0f;

// Elements of a column, of rows that begin so many bytes after its first one.
template <typename In, typename Out, int From, int To, int Size>
__device__ __forceinline__ void read_column(const uint8* column, const uint32* lines,
                                            float (&values)[Size]) {
  if constexpr (IN_PLACE<In, Out>) {
#pragma unroll
    for (int k = From; k < To; k++) values[k] = __uint_as_float(__ldg(column + lines[k]));
  } else {
    In elements[To - From];
#pragma unroll
    for (int k = From; k < To; k++) {
      elements[k - From] = __ldg(reinterpret_cast<const In*>(column + lines[k]));
    }
#pragma unroll
    for (int k = From; k < To; k++) values[k] = number_of(elements[k - From]);
  }
}

// Elements of 8 bytes need not be at multiples of 8: rows are an odd number of words apart.
template <typename T> __device__ __forceinline__ void put(uint8* to, T element) {
  if constexpr (sizeof(T) == 8) {
    const uint64 bits = __builtin_bit_cast(uint64, element);
    reinterpret_cast<uint32*>(to)[0] = static_cast<uint32>(bits);
    reinterpret_cast<uint32*>(to)[1] = static_cast<uint32>(bits >> 32);
  } else {
    *reinterpret_cast<T*>(to) = element;
  }
}

// Windows reach `Reach` elements to both sides if `Exact`, at most so far else.
template <typename In, typename Out, int Channels, int Reach, int Width, bool Exact>
__global__ void __launch_bounds__(threads_of(Channels, Width + 2 * Reach),
                                  BLOCKS<Channels, Reach, Width>)
filter_planes(const PlanesSample* __restrict__ samples, uint32 strips_per_sample, int32 strip_rows) {
  using Tile = Between<Channels, Reach, Width>;
  constexpr int THREADS = threads_of(Channels, Width + 2 * Reach), ROWS = Tile::rows;
  constexpr int line_count = MOST_ROWS + 2 * Reach, groups = Width / ACROSS;
  constexpr int staged_pitch = Width * Channels * int(sizeof(Out)) / 4 + 1;  // words: odd
  __shared__ __align__(16) float between[Channels * Tile::plane];
  __shared__ __align__(8) uint32 staged[ROWS * staged_pitch];
  __shared__ float row_weights[Reach + 1], column_weights[Reach + 1];
  __shared__ __align__(16) uint32 lines[line_count];

  const uint32 number = blockIdx.x / strips_per_sample;
  const uint32 strip = blockIdx.x - number * strips_per_sample;
  const PlanesSample& sample = samples[number];
  if (strip >= sample.strips) return;
  const int thread = threadIdx.x, height = sample.height, width = sample.width;
  const int row_reach = Exact ? Reach : sample.row_reach;
  const int column_reach = Exact ? Reach : sample.column_reach;
  uint32 strip_row = strip / sample.strips_across, plane = 0;
  const int first_column = (strip - strip_row * sample.strips_across) * Width;
  if (sample.strips_down * sample.strips_across < sample.strips) {
    plane = strip_row / sample.strips_down;
    strip_row -= plane * sample.strips_down;
  }
  const int first_row = strip_row * strip_rows, end_row = min(first_row + strip_rows, height);
  const uint32 pitch = uint32(width) * (Channels * int(sizeof(In)));
  // The first row that is needed, also of those that are repeated beyond the last one.
  const int top = max(first_row - MOST_ROWS - Reach, 0);
#pragma unroll 1
  for (int i = thread; i < line_count; i += THREADS) {
    lines[i] = (mirrored(first_row + i - Reach, height) - top) * pitch;
  }
  if (thread <= row_reach) {
    row_weights[thread] =
        reinterpret_cast<const float*>(sample.row_weights)[thread] * ROW_SCALE<In, Out>;
  }
  if (thread <= column_reach) {
    column_weights[thread] =
        reinterpret_cast<const float*>(sample.column_weights)[thread] * COLUMN_SCALE<In, Out>;
  }
  const int count = min(Width, width - first_column);
  const bool reads = thread < (count + 2 * column_reach) * Channels;
  const int channel = thread % Channels;
  const int from = thread / Channels + Tile::margin - column_reach;
  const uint8* column = reinterpret_cast<const uint8*>(sample.source) +
                        (int64(plane) * height + top) * pitch + channel * int(sizeof(In));
  if (reads) {
    const int position = mirrored(first_column + from - Tile::margin, width);
    column += int64(position) * (Channels * int(sizeof(In)));
  }
  float* const to_between = between + channel * Tile::plane + from;
  const int warp = thread / 32, lane = thread % 32;
  const int64 out_line = int64(width) * (Channels * int(sizeof(Out)));
  uint8* out = reinterpret_cast<uint8*>(sample.out) +
               (int64(plane) * height + first_row) * out_line +
               int64(first_column) * (Channels * int(sizeof(Out)));
  // Where all rows begin and end where words do, a thread stores a word of every few rows.
  constexpr int row_bytes = Width * Channels * int(sizeof(Out)), row_words = row_bytes / 4;
  constexpr int ROWS_AT_ONCE = THREADS / row_words;
  const int bytes = count * Channels * int(sizeof(Out)), word = thread % row_words;
  const bool whole_words = ROWS_AT_ONCE > 0 && ((reinterpret_cast<uint64>(out) | out_line | bytes) & 3) == 0;
  const int first_of_thread =
      4 * word < bytes && thread / row_words < ROWS_AT_ONCE ? thread / row_words : ROWS;
  __syncthreads();

  float values[ROWS + 2 * Reach];
  // Where bytes are floats, the next rows are on their way while others are filtered across, unless
  // there are too few registers for that.
  constexpr bool AHEAD = IN_PLACE<In, Out> && Exact && (Reach < 7 || Reach > 8);
  if (reads) {
    read_column<In, Out, 0, 2 * Reach>(column, lines, values);
    if (AHEAD) read_column<In, Out, 2 * Reach, 2 * Reach + ROWS>(column, lines, values);
  }
#pragma unroll 1
  for (int begin = 0; first_row + begin < end_row; begin += ROWS) {
    if (reads) {
      float sums[ROWS];
      if (!AHEAD) read_column<In, Out, 2 * Reach, 2 * Reach + ROWS>(column, lines + begin, values);
      weigh<ROWS, Reach, Exact, Reach>(values, row_weights, row_reach, sums);
#pragma unroll
      for (int k = 0; k < ROWS; k++) to_between[k * Tile::pitch] = sums[k];
#pragma unroll
      for (int k = 0; k < 2 * Reach; k++) values[k] = values[k + ROWS];
    }
    __syncthreads();
    if (AHEAD && reads && first_row + begin + ROWS < end_row) {
      read_column<In, Out, 2 * Reach, 2 * Reach + ROWS>(column, lines + begin + ROWS, values);
    }

#pragma unroll 1
    for (uint32 item = thread; item < ROWS * groups * Channels; item += THREADS) {
      // Threads of a warp work on rows one below the other.
      const uint32 row = item % ROWS, first = item / ROWS % groups * ACROSS;
      const uint32 c = item / (ROWS * groups);
      const float* const at = between + c * Tile::plane + row * Tile::pitch + first;
      float neighbours[ACROSS + 2 * Tile::margin], sums[ACROSS];
      const auto load = [&](int k) {
        const float4 four = *reinterpret_cast<const float4*>(at + k);
        neighbours[k] = four.x, neighbours[k + 1] = four.y;
        neighbours[k + 2] = four.z, neighbours[k + 3] = four.w;
      };
#pragma unroll
      for (int k = 0; k < ACROSS; k += 4) load(Tile::margin + k);
#pragma unroll
      for (int k = 4; k <= Tile::margin; k += 4) {
        if (!Exact && k - 4 >= column_reach) break;
        load(Tile::margin - k);
        load(Tile::margin + ACROSS + k - 4);
      }
      weigh<ACROSS, Reach, Exact, Tile::margin>(neighbours, column_weights, column_reach, sums);
      uint8* const to = reinterpret_cast<uint8*>(staged + row * staged_pitch) +
                        (first * Channels + c) * int(sizeof(Out));
#pragma unroll
      for (int k = 0; k < ACROSS; k++) {
        put(to + k * (Channels * int(sizeof(Out))), filtered<In, Out>(sums[k]));
      }
    }
    __syncthreads();

    const int rows = min(ROWS, end_row - first_row - begin);
    if (whole_words) {
      const uint32* source = staged + first_of_thread * staged_pitch + word;
      uint8* to = out + first_of_thread * out_line + 4 * word;
#pragma unroll 1
      for (int r = first_of_thread; r < rows; r += ROWS_AT_ONCE) {
        *reinterpret_cast<uint32*>(to) = *source;
        source += ROWS_AT_ONCE * staged_pitch;
        to += ROWS_AT_ONCE * out_line;
      }
    } else {
      uint8* to = out + warp * out_line;
#pragma unroll 1
      for (int r = warp; r < rows; r += THREADS / 32, to += THREADS / 32 * out_line) {
        store_packed<row_bytes, 32>(to, staged + r * staged_pitch,
                                    count * Channels * int(sizeof(Out)), lane);
      }
    }
    out += ROWS * out_line;
  }
}
