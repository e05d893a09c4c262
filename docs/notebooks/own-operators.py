# %% [markdown]
# # An operator of your own: on the CPU, then on the GPU
#
# Three ways, from a function of NumPy to a kernel in CUDA C++. A picture to try them on:

# %%
import numpy as np
from skimage import data

import headrace
from headrace import fn, pipeline_def

image = data.astronaut()[:256, 100:356]

# %% [markdown]
# ## A function
#
# Ten lines make an operator: `fn.vignette` has a docstring, checks its arguments, and takes a number or a tensor with one for each sample. `xp` is NumPy on the
# CPU and CuPy on a GPU, so that it runs on both.

# %%
from headrace.operators import Arg, FloatArg, Input, operator


@operator(
    "vignette",
    inputs=Input("image", layouts=("HWC",)),
    args=[Arg("strength", FloatArg, 0.5, "How dark the corners get, 0 to 1.", per_sample=True)],
)
def vignette(xp, image, strength):
    """Darken an image towards its corners."""
    height, width, _ = image.shape
    y = xp.linspace(-1, 1, height, dtype=xp.float32)[:, None, None]
    x = xp.linspace(-1, 1, width, dtype=xp.float32)[None, :, None]
    return (image * (1 - strength * (x * x + y * y) / 2)).astype(xp.uint8)


@pipeline_def(batch_size=3, num_threads=2, device_id=None, seed=1)
def shown():
    images = fn.external_source(lambda: [image] * 3, layout="HWC")
    return fn.vignette(images, strength=fn.random.uniform(range=[0.2, 1.0]))


headrace.show(shown().run())

# %%
help(fn.vignette)

# %% [markdown]
# A wrong call is refused as that of any operator:

# %%
try:

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def wrong():
        return fn.vignette(fn.external_source(lambda: [image], layout="HWC"), strenght=1)

    wrong()
except Exception as error:
    print(type(error).__name__, error)

# %% [markdown]
# ## A class, with a loop compiled by Numba
#
# `cpu` is called for each sample, by several threads at once; a compiled loop without the interpreter's lock lets them run side by side.

# %%
import numba
from headrace.operators import SampleOperator


@numba.njit(nogil=True)
def posterized(image, levels, out):
    step = 256 // levels
    for y in range(image.shape[0]):
        for x in range(image.shape[1]):
            for c in range(image.shape[2]):
                out[y, x, c] = image[y, x, c] // step * step


@operator(
    "posterize",
    inputs=Input("image", layouts=("HWC",)),
    args=[Arg("levels", FloatArg, 4.0, "Number of levels of a channel.", per_sample=True)],
)
class Posterize(SampleOperator):
    """Leave a few levels of each channel."""

    def infer(self, image):
        return image

    def cpu(self, c, image):
        out = c.empty(image.shape, np.uint8)
        posterized(np.ascontiguousarray(image), int(c.args.levels), out)
        return out


@pipeline_def(batch_size=3, num_threads=2, device_id=None)
def levels():
    images = fn.external_source(lambda: [image] * 3, layout="HWC")
    count = fn.external_source(lambda: [np.float32(n) for n in (2, 4, 8)])
    return fn.posterize(images, levels=count)


headrace.show(levels().run())

# %% [markdown]
# ## A kernel for the GPU
#
# A class may have `gpu` beside `cpu`: it gets the whole batch and launches one kernel for all samples. Where there is no GPU, as here, the declaration
# stands and the CPU runs it; `fn.gamma(images.gpu())` in a pipeline with a `device_id` launches the kernel.

# %%
from headrace.operators import CudaKernel, scalars

KERNEL = CudaKernel(
    "adjust_gamma",
    r"""
struct Image { uint64 source, out; int64 size; float gamma; };

__global__ void adjust_gamma(const Image* images) {
  const Image& image = images[blockIdx.y];
  const int64 i = int64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= image.size) return;
  const float level = reinterpret_cast<const uint8*>(image.source)[i] / 255.0f;
  reinterpret_cast<uint8*>(image.out)[i] = saturated<uint8>(255.0f * powf(level, image.gamma));
}
""",
)
IMAGE = np.dtype(
    [("source", np.uint64), ("out", np.uint64), ("size", np.int64), ("gamma", np.float32)],
    align=True,
)


@operator(
    "gamma",
    inputs=Input("image", layouts=("HWC",)),
    args=[Arg("gamma", FloatArg, 1.0, "Exponent of the levels.", per_sample=True)],
    devices=("cpu", "gpu"),
)
class Gamma(SampleOperator):
    """Raise the levels of an image to a power."""

    def infer(self, image):
        return image

    def cpu(self, c, image):
        out = c.empty(image.shape, np.uint8)
        levels = 255 * np.power(image / np.float32(255), np.float32(c.args.gamma))
        return np.rint(levels, out=out, casting="unsafe")

    def gpu(self, c, images):
        out = c.empty(images.extents, np.uint8)
        table = np.empty(c.size, IMAGE)
        table["source"], table["out"] = images.pointers, out.pointers
        table["size"] = sizes = images.sizes()
        table["gamma"] = scalars(c, "gamma", np.float32)
        blocks = -(-int(sizes.max(initial=0)) // 256)
        c.queue.launch(KERNEL, (blocks, c.size, 1), (256, 1, 1), c.queue.upload(table))
        return out


@pipeline_def(batch_size=3, num_threads=2, device_id=None, seed=1)
def brighter():
    images = fn.external_source(lambda: [image] * 3, layout="HWC")
    return fn.gamma(images, gamma=fn.random.uniform(range=[0.4, 2.0]))


headrace.show(brighter().run())

# %% [markdown]
# [Writing operators](../operators.md) and [writing a GPU operator](../gpu-operators.md) explain every method: shapes ahead of pixels, readers, decoders.
