"""`mixup`, `cutmix`, `mosaic`: samples that are mixed with others of their batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.errors import ArgumentValueError, DataTypeError, MisusedArgumentError, ShapeError
from headrace.kernels.cpu.random import fill_beta, units_after
from headrace.operators.image.multi_paste import PASTED
from headrace.operators.support.argument_types import (
    ArrayArg,
    BoolArg,
    FloatArg,
    IntArg,
    IntListArg,
    StringArg,
)
from headrace.operators.support.composite import Composite
from headrace.operators.support.operator import BatchOperator, SampleOperator, operator
from headrace.operators.support.planning import PlanContext
from headrace.operators.support.schema import REQUIRED, Arg, Input, Spec
from headrace.types import DALIDataType
from headrace.types.dtypes import FLOATS

_WORDS_OF_BETA = 1024
"""Words of a sample's stream that are left to the beta distribution."""
_ROUNDING = 1e-4
"""Share of a box that may be left by rounding errors alone."""
_PROBABILITY = Arg(
    "probability", FloatArg, 1.0, "How likely a sample is mixed with others.", per_sample=True
)
_ALPHA = Arg(
    "alpha",
    FloatArg,
    1.0,
    "Parameter of the beta distribution that shares are drawn from: the smaller it is, the less of "
    "one of the two images there is.",
)
_CLASSES = Arg(
    "num_classes",
    IntArg,
    None,
    "Number of classes, where `labels` are numbers of classes.",
)
_BOXES = (
    Arg(
        "boxes",
        ArrayArg,
        None,
        "Boxes of objects, ``(objects, 4)``, as shares of the image's extents; `labels`, if given, "
        "has a row for each of them.",
        per_sample=True,
        shape_of="(objects, 4)",
    ),
    Arg(
        "ltrb",
        BoolArg,
        False,
        "Whether a box is left, top, right and bottom; else left, top, width and height.",
    ),
)
_LEAST = Arg(
    "least_visible",
    FloatArg,
    0.1,
    "Boxes of which a smaller share is left are dropped, with their labels.",
)
_MASKS = Arg(
    "masks",
    ArrayArg,
    None,
    "Masks, of the images' extents, on any device; they change as images do.",
    per_sample=True,
    shape_of="(H, W, C)",
)
_LABELS = Input(
    "labels",
    "Numbers of classes, with `num_classes`; or real numbers of any shape, such as targets, or "
    "masks that are one-hot; with `boxes`, one row for each box.",
    optional=True,
)
_OUTPUTS = ("The images, followed by targets, boxes and masks, of those that were given.",)


def _pasted(doc: str) -> Input:
    return Input("images", doc, layouts=("HWC", "FHWC"), dtypes=PASTED)


def _outputs(args: dict[str, Any]) -> int:
    """Number of outputs, which follows from what was given."""
    return 1 + sum(args.get(name) is not None for name in ("labels", "boxes", "masks"))


class _Mix(Composite):
    """Code that the three share."""

    kind: str
    count: int
    """Number of images that one is made of."""

    def check_constants(self) -> None:
        args = self.args
        if not getattr(args, "alpha", 1.0) > 0:
            raise ArgumentValueError(f"`alpha` is {args.alpha:g}, but must be above 0.")
        if args.num_classes is not None and args.num_classes < 1:
            raise ArgumentValueError(f"`num_classes` is {args.num_classes}; give 1 or more.")

    def compose(self, do: Callable[..., Any], images: Any, labels: Any = None) -> Any:
        args = self.args
        if args.boxes is not None and args.num_classes is not None:
            raise MisusedArgumentError(
                f"`fn.{self.schema.name}` got `boxes` and `num_classes`: labels of boxes stay "
                "numbers. Leave `num_classes` out; `fn.one_hot` makes targets of them afterwards."
            )
        size = getattr(args, "output_size", None)
        drawn = do(
            "_mix.regions",
            do("_shape", images, device="cpu"),
            kind=self.kind,
            alpha=getattr(args, "alpha", None),
            probability=args.probability,
            output_size=size,
            seed=args.seed,
        )
        ids, begins, places, extents, sizes = drawn[:5]
        numbers, shares = drawn[5 : 5 + self.count], drawn[5 + self.count :]
        regions = {
            "in_ids": ids,
            "in_anchors": begins,
            "shapes": extents,
            "out_anchors": places,
            "output_size": size,
        }
        found = [self.mixed(do, images, numbers, shares, regions, **self.common())]
        if args.boxes is not None:
            given = [each for each in (args.boxes, labels) if each is not None]
            made = do(
                *("_mix.boxes", ids, begins, places, extents, sizes, *given),
                ltrb=args.ltrb,
                least_visible=getattr(args, "least_visible", 0.0),
                output_size=size,
                hides=self.kind != "mixup",
            )
            found += [made] if labels is None else [made[1], made[0]]
        elif labels is not None:
            if args.num_classes is not None:
                labels = do("one_hot", labels, num_classes=args.num_classes)
            found.append(_blended(do, do("_mix.soft", labels), numbers, shares))
        if getattr(args, "masks", None) is not None:
            found.append(self.mixed(do, args.masks, numbers, shares, regions))
        return found[0] if len(found) == 1 else found

    def mixed(
        self,
        do: Callable[..., Any],
        images: Any,
        numbers: Sequence[Any],
        shares: Sequence[Any],
        regions: dict[str, Any],
        **more: Any,
    ) -> Any:
        """Images that are pasted together from regions."""
        return do("multi_paste", images, **regions, **more)


def _blended(
    do: Callable[..., Any], data: Any, numbers: Sequence[Any], shares: Sequence[Any]
) -> Any:
    """Sums of samples, each times its share."""
    if getattr(data.device, "device_type", data.device) == "gpu":
        shares = [share.gpu() for share in shares]
    parts = [do("permute_batch", data, indices=k) * s for k, s in zip(numbers, shares, strict=True)]
    return sum(parts[1:], parts[0])


@operator(
    "mixup",
    inputs=(Input("images", "Images, or data of any layout, of one shape."), _LABELS),
    args=(_ALPHA, _PROBABILITY, _CLASSES, *_BOXES),
    output_docs=_OUTPUTS,
    num_outputs=_outputs,
    random=True,
)
class Mixup(_Mix):
    """Blends each image with another one of its batch, and their targets in the same shares.

    An image is ``s * image + (1 - s) * other``, with a share of its own that is drawn from
    ``Beta(alpha, alpha)``; integers are rounded. Of `boxes`, those of both images are kept.
    The others of a batch are as many different ones.

    See Also
    --------
    fn.cutmix : Cuts a rectangle out of another image.
    fn.mosaic : Puts four images side by side.

    References
    ----------
    H. Zhang, M. Cisse, Y. N. Dauphin, D. Lopez-Paz, "mixup: Beyond Empirical Risk Minimization",
    ICLR 2018, https://arxiv.org/abs/1710.09412.

    Examples
    --------
    >>> images, targets = fn.mixup(images, labels, num_classes=1000, alpha=0.2)
    """

    kind, count = "mixup", 2

    def mixed(
        self,
        do: Callable[..., Any],
        images: Any,
        numbers: Sequence[Any],
        shares: Sequence[Any],
        regions: dict[str, Any],
        **more: Any,
    ) -> Any:
        return do("cast_like", _blended(do, images, numbers, shares), images, **more)


@operator(
    "cutmix",
    inputs=(_pasted("Images or sequences, of one shape."), _LABELS),
    args=(_ALPHA, _PROBABILITY, _CLASSES, *_BOXES, _LEAST, _MASKS),
    output_docs=_OUTPUTS,
    num_outputs=_outputs,
    random=True,
)
class Cutmix(_Mix):
    """Puts a rectangle of another image of the batch in place of what is there in each image.

    The area of the rectangle, before it is cut off at the borders, is drawn from
    ``Beta(alpha, alpha)``, its centre is anywhere. Targets are mixed by the areas that are seen.

    See Also
    --------
    fn.mixup : Blends whole images.
    fn.mosaic : Puts four images side by side.

    References
    ----------
    S. Yun, D. Han, S. J. Oh, S. Chun, J. Choe, Y. Yoo, "CutMix: Regularization Strategy to Train
    Strong Classifiers with Localizable Features", ICCV 2019, https://arxiv.org/abs/1905.04899.

    Examples
    --------
    >>> images, targets = fn.cutmix(images, labels, num_classes=1000)
    >>> images, labels, boxes = fn.cutmix(images, labels, boxes=boxes, probability=0.5)
    """

    kind, count = "cutmix", 2


@operator(
    "mosaic",
    inputs=(_pasted("Images or sequences, of any extents."), _LABELS),
    args=(
        Arg("output_size", IntListArg, REQUIRED, "Height and width of the outputs, in pixels."),
        *(_PROBABILITY, _CLASSES, *_BOXES, _LEAST, _MASKS),
    ),
    output_docs=_OUTPUTS,
    num_outputs=_outputs,
    random=True,
)
class Mosaic(_Mix):
    """Puts the image and three others of the batch, any of them, around a point of a canvas.

    The point lies in the middle half of the canvas. Images, of any sizes, touch it with a corner;
    what does not fit is cut off and what they do not cover is zero, so that they should have at
    least three quarters of the canvas' extents. An image that is not mixed lies in the middle.

    See Also
    --------
    fn.multi_paste : Pastes any regions.

    References
    ----------
    A. Bochkovskiy, C.-Y. Wang, H.-Y. M. Liao, "YOLOv4: Optimal Speed and Accuracy of Object
    Detection", 2020, https://arxiv.org/abs/2004.10934.

    Examples
    --------
    >>> images, labels, boxes = fn.mosaic(images, labels, boxes=boxes, output_size=(640, 640))
    """

    kind, count = "mosaic", 4

    def check_constants(self) -> None:
        super().check_constants()
        size = self.args.output_size
        if size is not None and (len(size) != 2 or min(size) < 1):
            raise ArgumentValueError(f"`output_size` is {list(size)}; expected height and width.")


@operator(
    "_mix.regions",
    inputs=Input("shapes", "Shapes of images."),
    args=(
        Arg("kind", StringArg, REQUIRED, "What is made."),
        Arg("output_size", IntListArg, None, "Height and width of the outputs."),
        *(_ALPHA, _PROBABILITY),
    ),
    num_outputs=lambda args: 13 if args["kind"] == "mosaic" else 9,
    random=True,
    devices=("cpu",),
    hidden=True,
)
class Regions(BatchOperator):
    """Draws of which samples, and regions of them, each is made.

    The outputs are the samples' numbers, where regions begin there, where in the output, their
    extents, the extents of the sample itself; each number by itself; and each share of the area.
    """

    def infer(self, shapes: Spec) -> tuple[Spec, ...]:
        count = self._count = 4 if self.args.kind == "mosaic" else 2
        whole, real = DALIDataType.INT32, DALIDataType.FLOAT
        tables = [Spec(whole, 1), *[Spec(whole, 2)] * 3, Spec(whole, 1)]
        return (*tables, *[Spec(whole, 0)] * count, *[Spec(real, 0)] * count)

    def cpu(self, c: Any, shapes: Sequence[np.ndarray]) -> tuple[list[np.ndarray], ...]:
        kind = self.args.kind
        own = np.arange(c.size)
        samples = np.asarray(c.indices, np.int64)
        drawn = units_after(c.seed, c.iteration, samples, np.full(c.size, _WORDS_OF_BETA), 8)
        chance = np.array(c.values("probability"), np.float64)
        taken = drawn[:, 0] < chance
        if np.isnan(chance).any():
            raise ArgumentValueError(f"`probability` of `fn.{kind}` is not a number.")
        turn = 1 + int(drawn[0, 1] * (c.size - 1)) if c.size > 1 else 0
        ids = np.stack([own, (own + turn) % max(c.size, 1)], 1) if c.size else own.reshape(0, 2)
        if kind == "mosaic":
            ids = np.column_stack([own, (drawn[:, 1:4] * c.size).astype(np.int64)])
            sizes = np.array([s[-3:-1] for s in shapes]).reshape(-1, 2)
            corner = np.array(self.args.output_size) * (0.25 + drawn[:, 4:6] / 2)
            parts = self._tiles(sizes, corner.astype(np.int64), ids, taken)
        else:
            self._check_alike(c, shapes, ids)
            share = self._shares(c, samples)
            if kind == "cutmix":
                sizes = np.array([s[-3:-1] for s in shapes]).reshape(-1, 2)
                parts = self._windows(sizes, share, drawn[:, 4:6], taken)
            else:
                sizes = np.ones((c.size, 2), np.int64)
                whole = np.ones((c.size, 2, 2), np.int64)
                whole[~taken, 1] = 0
                parts = np.stack([0 * whole, 0 * whole, whole], 1)
        areas = parts[:, 2].prod(-1).astype(np.float64)
        if kind == "mixup":
            areas[taken] = np.stack([share, 1 - share], 1)[taken]
        elif kind == "cutmix":
            areas[:, 0] -= areas[:, 1]
        shares = (areas / np.maximum(areas.sum(1, keepdims=True), 1e-9)).astype(np.float32)
        tables = [ids, parts[:, 0], parts[:, 1], parts[:, 2], sizes, *ids.T]
        numbers = [np.ascontiguousarray(table, np.int32) for table in tables]
        return tuple([[t[k, ...] for k in range(c.size)] for t in (*numbers, *shares.T.copy())])

    def _shares(self, c: PlanContext, samples: np.ndarray) -> np.ndarray:
        """A share of each sample's own image."""
        first = int(samples.min(initial=0))
        found = np.empty((int(samples.max(initial=0)) - first + 1, 1))
        fill_beta(found, c.seed, c.iteration, first, self.args.alpha, self.args.alpha, single=True)
        return found[samples - first, 0]  # type: ignore[no-any-return]

    def _check_alike(self, c: Any, shapes: Sequence[np.ndarray], ids: np.ndarray) -> None:
        for k, (_, other) in enumerate(ids.tolist()):
            if shapes[k].tolist() != shapes[other].tolist():
                raise c.located(
                    ShapeError(
                        f"`fn.{self.args.kind}` mixes images of one shape; sample {k} is of "
                        f"{shapes[k].tolist()}, sample {other} of {shapes[other].tolist()}. "
                        "`fn.resize` or `fn.random_resized_crop` in front makes them alike."
                    ),
                    k,
                )

    @staticmethod
    def _windows(
        sizes: np.ndarray, share: np.ndarray, centres: np.ndarray, taken: np.ndarray
    ) -> np.ndarray:
        """The whole image, and a rectangle of the other: ``(samples, 3, 2, 2)``."""
        half = (0.5 * np.sqrt(1 - share)[:, None] * sizes).astype(np.int64)
        middle = (centres * sizes).astype(np.int64)
        begin, end = np.maximum(middle - half, 0), np.minimum(middle + half, sizes)
        end[~taken] = begin[~taken]
        places = np.stack([0 * begin, begin], 1)
        return np.stack([places, places, np.stack([sizes, end - begin], 1)], 1)

    def _tiles(
        self, sizes: np.ndarray, corner: np.ndarray, ids: np.ndarray, taken: np.ndarray
    ) -> np.ndarray:
        """Four images around a point, or one in the middle: ``(samples, 3, 4, 2)``."""
        size = np.array(self.args.output_size)
        low = np.array([[1, 1], [1, 0], [0, 1], [0, 0]], bool)  # ends at the point, or begins there
        inside = sizes[ids]
        point = corner[:, None]
        extents = np.minimum(inside, np.where(low, point, size - point))
        begins = np.where(low, inside - extents, 0)
        places = np.where(low, point - extents, point)
        alone = np.minimum(sizes, size)
        for table, values in (
            (extents, alone),
            (begins, (sizes - alone) // 2),
            (places, (size - alone) // 2),
        ):
            table[~taken] = 0
            table[~taken, 0] = values[~taken]
        return np.stack([begins, places, extents], 1)


@operator(
    "_mix.boxes",
    inputs=(
        *(Input(name) for name in ("ids", "begins", "places", "extents", "sizes")),
        Input("boxes", dtypes=(DALIDataType.FLOAT,)),
        Input("labels", optional=True),
    ),
    args=(
        *(_BOXES[1], _LEAST, Arg("output_size", IntListArg, None, "Height and width.")),
        Arg("hides", BoolArg, True, "Whether later regions hide earlier ones."),
    ),
    optional_adds_output=True,
    devices=("cpu",),
    hidden=True,
)
class BoxesOfRegions(BatchOperator):
    """Moves boxes with the regions they are in, cuts them there and drops what is hardly seen."""

    def infer(self, *inputs: Spec) -> tuple[Spec, ...]:
        boxes = inputs[5]._replace(layout="")
        return (boxes, *[labels._replace(layout="") for labels in inputs[6:]])

    def cpu(
        self,
        c: Any,
        ids: Sequence[np.ndarray],
        begins: Sequence[np.ndarray],
        places: Sequence[np.ndarray],
        extents: Sequence[np.ndarray],
        sizes: Sequence[np.ndarray],
        boxes: Sequence[np.ndarray],
        labels: Sequence[np.ndarray] | None = None,
    ) -> Any:
        pixels = []
        for k, given in enumerate(boxes):
            if given.ndim != 2 or given.shape[1] != 4 or (labels and len(labels[k]) != len(given)):
                rows = "" if labels is None else f" and labels of the shape {labels[k].shape}"
                raise c.located(
                    ShapeError(
                        f"Boxes of the shape {given.shape}{rows}: expected (objects, 4), with as "
                        "many rows of labels."
                    ),
                    k,
                )
            scaled = given.astype(np.float64).reshape(-1, 2, 2)
            if not self.args.ltrb:
                scaled[:, 1] += scaled[:, 0]
            pixels.append(scaled * sizes[k][::-1])
        found, kept = [], []
        for k in range(c.size):
            each = [
                self._seen(pixels[i], begins[k], places[k], extents[k], r)
                for r, i in enumerate(ids[k])
            ]
            size = np.array(self.args.output_size or sizes[k], np.float64)[::-1]
            moved = np.concatenate([moved for moved, _ in each]) / size
            if not self.args.ltrb:
                moved[:, 1] -= moved[:, 0]
            found.append(moved.reshape(-1, 4).astype(np.float32))
            if labels is not None:
                parts = zip(ids[k], each, strict=True)
                kept.append(np.concatenate([labels[i][seen] for i, (_, seen) in parts]))
        return found if labels is None else (found, kept)

    def _seen(
        self, boxes: np.ndarray, begins: np.ndarray, places: np.ndarray, extents: np.ndarray, r: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Boxes of region `r` in the output, and which of the image's boxes these are."""
        begin, place, extent = (table[r, ::-1] for table in (begins, places, extents))
        cut = np.clip(boxes, begin, begin + extent) + (place - begin)
        area = _areas(cut)
        if self.args.hides:
            for other in range(r + 1, len(extents)):
                low = places[other, ::-1]
                area = area - _areas(np.clip(cut, low, low + extents[other, ::-1]))
        least = max(self.args.least_visible, _ROUNDING)
        seen = (area > 0) & (area >= least * _areas(boxes))
        return cut[seen], seen


def _areas(boxes: np.ndarray) -> np.ndarray:
    return np.maximum(boxes[:, 1] - boxes[:, 0], 0).prod(-1)  # type: ignore[no-any-return]


@operator("_mix.soft", inputs=Input("labels"), hidden=True)
class Soft(SampleOperator):
    """Passes real numbers on, which can be mixed, and refuses numbers of classes."""

    def infer(self, labels: Spec) -> Spec:
        if labels.dtype not in FLOATS:
            raise DataTypeError(
                f"`labels` are of type {labels.dtype.name}: to mix numbers of classes, give "
                "`num_classes`; with `boxes`, give these as well."
            )
        return labels

    def cpu(self, c: Any, labels: np.ndarray) -> np.ndarray:
        return labels

    def gpu(self, c: Any, labels: Any) -> Any:
        return labels
