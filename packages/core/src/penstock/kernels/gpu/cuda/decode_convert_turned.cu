// Conversion of decoded images whose rows become columns: EXIF orientations 5 to 8.
#include "decode_convert.cuh"

constexpr int kTile = 32;
constexpr int kRows = 8;
constexpr int kMostChannels = 4;

// Grid: tiles of kTile x kTile pixels of the output, images; blocks of (kTile, kRows) threads.
// A tile is read along the stored rows and written along those of the output.
template <typename In, typename Out>
__global__ void convert_turned(const DecodedImage *images, const float *matrix) {
  // One column more than needed, so that threads that walk down a column meet different banks.
  __shared__ In tile[kTile][(kTile + 1) * kMostChannels];
  const DecodedImage image = images[blockIdx.y];
  const int tiles_across = (image.width + kTile - 1) / kTile;
  const int top = int(blockIdx.x) / tiles_across * kTile;
  const int left = (int(blockIdx.x) % tiles_across) * kTile;
  const int channels = image.channels;
  const In *source = reinterpret_cast<const In *>(image.source);
  Out *target = reinterpret_cast<Out *>(image.target);
  const int x = threadIdx.x, y = threadIdx.y;
  for (int k = y; k < kTile; k += kRows) {
    // Neighbouring threads take neighbouring rows of the output, which lie side by side.
    if (top + x < image.height && left + k < image.width) {
      const In *pixel = source + (top + x) * image.row_step + (left + k) * image.column_step;
      for (int c = 0; c < channels; c++) tile[k][x * kMostChannels + c] = pixel[c];
    }
  }
  __syncthreads();
  for (int k = y; k < kTile; k += kRows) {
    if (top + k < image.height && left + x < image.width) {
      store_pixel<In, Out>(
          &tile[x][k * kMostChannels],
          target + (int64(top + k) * image.width + left + x) * channels, channels, matrix);
    }
  }
}
