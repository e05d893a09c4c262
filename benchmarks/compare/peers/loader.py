"""torchvision, torchcodec and AlbumentationsX: data sets that PyTorch's loader reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.compare import work

_NO_VIDEO = "it reads images alone"


class _Items:
    """What `load` makes of each item."""

    def __init__(self, items: Any, load: Callable[[Any], Any]) -> None:
        self._items, self._load = items, load

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: int) -> Any:
        return self._load(self._items[index])


def _batches(
    items: Any,
    load: Callable[[Any], Any],
    batch_size: int = work.BATCH,
    collate: Callable[[list[Any]], Any] | None = None,
) -> work.Batches:
    from torch.utils.data import DataLoader, RandomSampler

    data: Any = _Items(items, load)
    loader = DataLoader(
        data,
        batch_size=batch_size,
        # One epoch without an end: none of its workers ever waits for the next.
        sampler=RandomSampler(data, replacement=True, num_samples=10**7),
        num_workers=work.WORKERS,
        collate_fn=collate,
    )
    for batch in loader:
        yield len(batch)


def _vision(*transforms: str) -> Any:
    import torch
    from torchvision.transforms import v2

    known = {
        "random crop": lambda: v2.RandomResizedCrop(224, scale=(0.08, 1.0)),
        "mirror": lambda: v2.RandomHorizontalFlip(),
        "resize": lambda: v2.Resize((256, 256)),
        "centre": lambda: v2.CenterCrop(224),
        "rotate": lambda: v2.RandomRotation(30, v2.InterpolationMode.BILINEAR),
        "colours": lambda: v2.ColorJitter(brightness=0.3, contrast=0.3),
        "blur": lambda: v2.GaussianBlur(11, 1.5),
        "tensor": lambda: v2.PILToTensor(),
    }
    last = [v2.ToDtype(torch.float32, scale=True), v2.Normalize(work.UNIT_MEAN, work.UNIT_STD)]
    return v2.Compose([known[name]() for name in transforms] + last)


_TRAIN, _VALIDATE = ("random crop", "mirror"), ("resize", "centre")


def _pillow(*transforms: str) -> Callable[[Path], work.Batches]:
    def batches(folder: Path) -> work.Batches:
        from torchvision.datasets.folder import default_loader

        transform = _vision(*transforms, "tensor")
        return _batches(work.images(folder), lambda path: transform(default_loader(path)))

    return batches


def _torchvision_augment(folder: Path) -> work.Batches:
    import torch

    transform = _vision("rotate", "colours", "blur")
    return _batches(
        work.decoded(folder), lambda image: transform(torch.from_numpy(image).permute(2, 0, 1))
    )


def _torchcodec(*transforms: str) -> Callable[[Path], work.Batches]:
    def batches(folder: Path) -> work.Batches:
        from torchcodec.decoders import decode_jpeg

        transform = _vision(*transforms)
        return _batches(work.images(folder), lambda path: transform(decode_jpeg(str(path))))

    return batches


def _torchcodec_video(folder: Path) -> work.Batches:
    from torchcodec.decoders import VideoDecoder
    from torchcodec.samplers import clips_at_random_indices
    from torchcodec.transforms import Resize

    def load(path: str) -> Any:
        decoder = VideoDecoder(
            path, seek_mode="approximate", transforms=[Resize((work.FRAME_EXTENT,) * 2)]
        )
        return clips_at_random_indices(decoder, num_frames_per_clip=work.FRAMES).data[0]

    return _batches(work.videos(folder), load, work.CLIPS)


def _torchcodec_audio(folder: Path) -> work.Batches:
    from torchcodec.decoders import AudioDecoder

    def load(path: str) -> Any:
        decoder = AudioDecoder(path, sample_rate=work.SAMPLE_RATE, num_channels=1)
        return decoder.get_all_samples().data

    return _batches(work.clips(folder), load, collate=list)


def _albumentations(*transforms: str) -> Any:
    import albumentations as alb
    import cv2

    cv2.setNumThreads(0)  # as its documentation says, beside the loader's processes
    known = {
        "random crop": lambda: alb.RandomResizedCrop((224, 224), scale=(0.08, 1.0)),
        "mirror": lambda: alb.HorizontalFlip(),
        "resize": lambda: alb.Resize(256, 256, interpolation=cv2.INTER_AREA),
        "centre": lambda: alb.CenterCrop(224, 224),
        "rotate": lambda: alb.Rotate((-30, 30), p=1),
        "colours": lambda: alb.RandomBrightnessContrast((-0.3, 0.3), (-0.3, 0.3), p=1),
        "blur": lambda: alb.GaussianBlur(sigma_range=(1.5, 1.5), p=1),
    }
    last = [alb.Normalize(), alb.ToTensorV2()]
    composed = alb.Compose([known[name]() for name in transforms] + last)
    return lambda image: composed(image=image)["image"]


def _opencv(*transforms: str) -> Callable[[Path], work.Batches]:
    def batches(folder: Path) -> work.Batches:
        import cv2

        transform = _albumentations(*transforms)
        return _batches(
            work.images(folder), lambda p: transform(cv2.imread(str(p), cv2.IMREAD_COLOR_RGB))
        )

    return batches


TORCHVISION = work.Library(
    ("torchvision", "torch", "pillow"),
    {
        "train": _pillow(*_TRAIN),
        "validate": _pillow(*_VALIDATE),
        "augment": _torchvision_augment,
    },
    {
        "video": "its video decoders have moved to torchcodec",
        "audio": _NO_VIDEO,
    },
    "`ImageFolder`'s loader (Pillow) and transforms v2, `DataLoader` with two processes",
)
TORCHCODEC = work.Library(
    ("torchcodec", "torchvision", "torch"),
    {
        "train": _torchcodec(*_TRAIN),
        "validate": _torchcodec(*_VALIDATE),
        "video": _torchcodec_video,
        "audio": _torchcodec_audio,
    },
    {"augment": "it decodes; nothing of it works on decoded images"},
    "its decoders, torchvision's transforms v2 for images, `DataLoader` with two processes",
)
ALBUMENTATIONS = work.Library(
    ("albumentationsx", "opencv-python-headless", "torch"),
    {
        "train": _opencv(*_TRAIN),
        "validate": _opencv(*_VALIDATE),
        "augment": lambda f: _batches(
            work.decoded(f), _albumentations("rotate", "colours", "blur")
        ),
    },
    {
        "video": "it has no decoders; OpenCV's would be what is measured",
        "audio": _NO_VIDEO,
    },
    "OpenCV's decoder, `DataLoader` with two processes",
)
