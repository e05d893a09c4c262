"""Write the list of kernels that are compiled when the core is built: `kernels/ahead.json`.

They are those that the README's program needs for its first batches, and those of the validation
program beside it, found by running both.

    python tools/gen_kernel_list.py
"""

from __future__ import annotations

import base64
import json
import os
import pickle
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ["HEADRACE_CACHE_DIR"] = _CACHE = tempfile.mkdtemp()
os.environ["HEADRACE_COMPILATION_NOTICE"] = "off"

from numba.core import event

from examples.demo.photographs import write_dataset
from headrace import fn, pipeline_def, types
from headrace.kernels import ahead, compilation

ahead.FOLDER = Path(_CACHE, "none")

_MEAN, _STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]


@pipeline_def(num_threads=2, device_id=None, seed=42)
def _train(root: str) -> Any:
    jpegs, labels = fn.readers.file(file_root=root, random_shuffle=True, name="reader")
    images = fn.decoders.image_random_crop(jpegs, random_area=[0.08, 1.0])
    images = fn.resize(images, resize_x=224, resize_y=224)
    images = fn.crop_mirror_normalize(
        images,
        dtype=types.FLOAT,
        output_layout="CHW",
        mean=_MEAN,
        std=_STD,
        mirror=fn.random.coin_flip(),
    )
    return images, labels


@pipeline_def(num_threads=2, device_id=None, seed=42)
def _validate(root: str) -> Any:
    jpegs, labels = fn.readers.file(file_root=root, name="reader")
    images = fn.resize(fn.decoders.image(jpegs), resize_shorter=256)
    images = fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, output_layout="CHW", crop=(224, 224), mean=_MEAN, std=_STD
    )
    return images, labels


class _Compiled(event.Listener):
    """Notes the library's kernels that are called from Python."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[Any, tuple[Any, ...]]] = {}

    def on_start(self, started: event.Event) -> None:
        dispatcher, arguments = started.data["dispatcher"], started.data["args"]
        if isinstance(getattr(dispatcher, "_cache", None), compilation.KernelCache):
            where = _place(dispatcher)
            self.found[f"{where} {arguments}"] = (where, arguments)

    def on_end(self, ended: event.Event) -> None:
        pass


def _place(dispatcher: Any) -> str:
    """Module and name that hold this kernel."""
    for name, module in list(sys.modules.items()):
        if name.startswith("headrace.kernels."):
            for key, value in vars(module).items():
                if value is dispatcher and (
                    module.__name__ == dispatcher.__module__ or not _is_at_home(dispatcher)
                ):
                    return f"{name}:{key}"
    raise LookupError(f"No module has {dispatcher}.")


def _is_at_home(dispatcher: Any) -> bool:
    return dispatcher in vars(sys.modules[dispatcher.__module__]).values()


def main() -> None:
    """Write the list."""
    compiled = _Compiled()
    event.register("numba:compile", compiled)
    with tempfile.TemporaryDirectory() as scratch:
        root = str(write_dataset(Path(scratch) / "photographs", 128))
        for program in (_train, _validate):
            for batch_size in (1, 8, 64):
                pipe = program(root, batch_size=batch_size)
                for _ in range(6):
                    pipe.run()
    entries = []
    for where, arguments in sorted(compiled.found.values(), key=str):
        module, _, name = where.partition(":")
        pickled = base64.b64encode(pickle.dumps(arguments)).decode()
        types_said = [str(argument) for argument in arguments]
        entries.append({"module": module, "name": name, "types": types_said, "pickled": pickled})
    ahead.LISTED.write_text(json.dumps(entries, indent=1) + "\n")
    print(f"{len(entries)} kernels")


if __name__ == "__main__":
    main()
