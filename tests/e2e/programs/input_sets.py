"""The same random window for an image and its mask: several inputs at once; outputs inspected."""

import numpy as np
import nvidia.dali as dali
import nvidia.dali.fn as fn
import nvidia.dali.ops as ops
import nvidia.dali.types as types
from nvidia.dali.backend import TensorListCPU
from nvidia.dali.tensors import TensorCPU


@dali.pipeline_def(num_threads=2, device_id=None, seed=3)
def segmentation(images, masks, positions):
    image = fn.external_source(source=images, layout="HWC", cycle=True)
    mask = fn.external_source(source=masks, layout="HWC", cycle=True)
    x = fn.external_source(source=positions, cycle=True, dtype=types.FLOAT)
    angle = 12.5 - 3 * fn.random.coin_flip(probability=0.0)
    image, mask = fn.rotate([image, mask], angle=angle, fill_value=0, keep_size=True)
    image, mask = fn.crop([image, mask], crop=(11, 13), crop_pos_x=x[0], crop_pos_y=x[1])
    image, mask = ops.Flip(horizontal=0)([image, mask], vertical=1)
    image = fn.normalize(image, mean=100, stddev=50, dtype=types.FLOAT)
    mask = fn.cast(mask == 2, dtype=types.INT32) * 10 + fn.constant(idata=[1], shape=[1])
    return image, mask, types.Constant(np.float32([1, 2])), 5


def main(image_dir):
    rng = np.random.default_rng(8)
    images = [[rng.integers(0, 255, (20 + i, 24, 3)).astype(np.uint8) for i in range(4)]]
    masks = [[rng.integers(0, 3, (20 + i, 24, 1)).astype(np.uint8) for i in range(4)]]
    positions = [rng.uniform(0, 1, (4, 2)).astype(np.float32)]
    pipe = segmentation(images, masks, positions, batch_size=4)
    pipe.build()
    results = []
    for _ in range(2):
        outputs = pipe.run()
        image, mask, constant, number = outputs
        assert isinstance(image, TensorListCPU)
        assert isinstance(image[0], TensorCPU)
        assert image.dtype == types.DALIDataType.FLOAT
        assert (len(image), image.layout(), image.is_dense_tensor()) == (4, "HWC", True)
        assert image.shape() == [(11, 13, 3)] * 4
        assert np.asarray(image[1]).base is not None
        assert image.as_cpu().as_tensor().shape() == [4, 11, 13, 3]
        assert [t.shape() for t in mask] == [[11, 13, 1]] * 4
        results.append([np.array(image.as_tensor()), np.array(mask.as_tensor())])
        results.append([np.array(constant.at(2)), number.as_array(), np.array(number[0])])
    return results
