"""What a program on the CPU loads: nothing it does not use."""

from __future__ import annotations

import json

from tests.e2e.support import one_file_a_class, run_python

PROGRAM = """
import json, sys
import headrace
after_import = sorted(sys.modules)
from headrace import fn, ops, math, pipeline_def, types

@pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=1)
def everyday(root):
    jpegs, labels = fn.readers.file(file_root=root, random_shuffle=True)
    images = fn.decoders.image_random_crop(jpegs)
    images = fn.resize(images, size=[24, 24])
    angle = fn.random.uniform(range=[-5.0, 5.0])
    images = ops.Rotate(keep_size=True)(images, angle=angle)
    images = fn.gaussian_blur(images, sigma=math.abs(angle) + 0.5)
    images = fn.crop_mirror_normalize(images, dtype="float32", output_layout="CHW")
    return images * 2, labels, fn.peek_image_shape(jpegs)

pipe = everyday(sys.argv[1])
for _ in range(3):
    pipe.run()
print(json.dumps([after_import, sorted(sys.modules)]))
"""

FRAMEWORKS = {"torch", "jax", "flax", "tensorflow", "cupy", "squirrel", "nvidia.dali"}
HEAVY = {"cloudpickle", "numba", "cv2", "scipy", "simplejpeg", "PIL", "fsspec", "nvidia.nvimgcodec"}


def loaded(modules: list[str], names: set[str]) -> set[str]:
    return {name for name in names if name in modules}


def test_a_cpu_pipeline_loads_no_framework(tmp_path):
    root = one_file_a_class(tmp_path, 6)
    after_import, after_run = json.loads(run_python("-c", PROGRAM, str(root)).stdout)
    assert "headrace" in after_import
    assert not loaded(after_import, FRAMEWORKS | HEAVY)
    assert not loaded(after_run, FRAMEWORKS)
    assert "PIL" not in after_run
    assert "pytest" not in after_run


def test_the_plugins_are_loaded_on_demand():
    program = "import sys, headrace.plugin; print('torch' in sys.modules)"
    assert run_python("-c", program).stdout == "False\n"
