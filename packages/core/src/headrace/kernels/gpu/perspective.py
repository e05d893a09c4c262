"""Images seen from elsewhere: the GPU's side of `headrace.kernels.cpu.perspective`."""

from __future__ import annotations

import numpy as np

from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, launch_records, quotient_up
from headrace.kernels.gpu.shared import numbered, record
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.queue import Queue

BORDERS = numbered(__name__, "Border", ("constant", "replicate", "reflect", "reflect_101", "wrap"))
KINDS = numbered(__name__, "Kind", ("nearest", "linear", "cubic"))
_IMAGE = record("""perspective:Seen {
    uint32 first_block;
    uint64 source, out;
    uint64 given;  // address of a float32 matrix; 0 where `matrix` is it
    double matrix[9];  // between centres of pixels
    float fill[4];
    int64 height, width, out_height, out_width, channels;
}""")


def warp_perspective(
    queue: Queue,
    images: DeviceBatch,
    matrices: np.ndarray,
    given: np.ndarray | None,
    out: DeviceBatch,
    *,
    corners: bool,
    inverse: bool,
    interpolation: str,
    border: str,
    fill: tuple[float, ...],
    planar: bool,
) -> None:
    """Fill `out` with `images`, looked up where projective maps say.

    Parameters are those of the kernel for the CPU, but `matrices`, ``(samples, 3, 3)``; in place of
    which `given` may be addresses of float32 matrices on the device, of coordinates between corners
    of pixels if `corners`.
    """
    records = np.zeros(len(out), _IMAGE)
    records["source"], records["out"] = images.pointers, out.pointers
    records["given"] = 0 if given is None else given
    records["matrix"] = matrices.reshape(-1, 9)
    records["fill"] = (*fill, 0.0, 0.0, 0.0)[:4] if len(fill) > 1 else fill * 4
    first = int(planar)
    shapes = np.broadcast_to(images.shapes, (len(out), images.shapes.shape[1]))
    records["height"], records["width"] = shapes[:, first], shapes[:, first + 1]
    records["out_height"], records["out_width"] = out.shapes[:, first], out.shapes[:, first + 1]
    records["channels"] = 1 if shapes.shape[1] == 2 else shapes[:, 0 if planar else 2]
    name = kernel("perspective.cu", "warp_perspective", images.dtype, KINDS[interpolation])
    launch_records(
        queue,
        name,
        records,
        quotient_up(records["out_height"] * records["out_width"], THREADS),
        np.int32(BORDERS[border]),
        np.int32(corners),
        np.int32(inverse),
        np.int32(planar),
    )
