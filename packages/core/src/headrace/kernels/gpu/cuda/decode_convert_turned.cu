// Conversion of decoded images whose rows become columns: EXIF orientations 5 to 8.
#include "decode_convert.cuh"

#include "decode.convert:TILE"
#include "decode.convert:TILE_ROWS"
constexpr int MOST_CHANNELS = 4;

// Grid: tiles of TILE x TILE pixels of the output, images; blocks of (TILE, TILE_ROWS) threads.
// A tile is read along the stored rows and written along those of the output.
template <typename In, typename Out>
__global__ void convert_turned(const DecodedImage *images, const float *matrix) {
  // One column more than needed, so that threads that walk down a column meet different banks.
  __shared__ In tile[TILE][(TILE + 1) * MOST_CHANNELS];
  const DecodedImage image = images[blockIdx.y];
  const int tiles_across = (image.width + TILE - 1) / TILE;
  const int top = int(blockIdx.x) / tiles_across * TILE;
  const int left = (int(blockIdx.x) % tiles_across) * TILE;
  const int channels = image.channels;
  const In *source = reinterpret_cast<const In *>(image.source);
  Out *target = reinterpret_cast<Out *>(image.target);
  const int x = threadIdx.x, y = threadIdx.y;
  for (int k = y; k < TILE; k += TILE_ROWS) {
    // Neighbouring threads take neighbouring rows of the output, which lie side by side.
    if (top + x < image.height && left + k < image.width) {
      const In *pixel = source + (top + x) * image.row_step + (left + k) * image.column_step;
      for (int c = 0; c < channels; c++) tile[k][x * MOST_CHANNELS + c] = pixel[c];
    }
  }
  __syncthreads();
  for (int k = y; k < TILE; k += TILE_ROWS) {
    if (top + k < image.height && left + x < image.width) {
      store_pixel<In, Out>(
          &tile[x][k * MOST_CHANNELS],
          target + (int64(top + k) * image.width + left + x) * channels, channels, matrix);
    }
  }
}
