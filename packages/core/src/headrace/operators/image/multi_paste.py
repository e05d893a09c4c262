"""`multi_paste`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from headrace.errors import (
    ArgumentValueError,
    DataTypeError,
    MisusedArgumentError,
    OutOfRangeError,
    ShapeError,
)
from headrace.kernels.cpu.cast import converter
from headrace.kernels.gpu import paste as _gpu
from headrace.operators.support.argument_types import ArrayArg, DataTypeArg, IntListArg
from headrace.operators.support.operator import BatchContext, BatchOperator, operator
from headrace.operators.support.planning import PlanContext
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.types import DALIDataType, to_numpy_type

PASTED = (DALIDataType.UINT8, DALIDataType.INT16, DALIDataType.INT32, DALIDataType.FLOAT)
_PLACES = {
    "in_anchors": "Upper left corners of the regions in their images, in pixels; 0 if not given.",
    "out_anchors": "Upper left corners of the regions in the output, in pixels; 0 if not given.",
    "shapes": "Heights and widths of the regions, in pixels; if not given, they reach to the ends "
    "of their images.",
}
_PlacesArg = replace(ArrayArg, name="nested list of int", whole=True)


class _PastedOutput(NamedTuple):
    """Regions that one image, or one sequence, is pasted together from."""

    shape: tuple[int, ...]
    """Without frames: ``(height, width, channels)``."""
    sources: Sequence[tuple[int, int]]
    """Number of the input, and of the sample, of each region."""
    places: np.ndarray
    """int64 ``(frames or 1, regions, 6)``: the corners of regions, and their extents."""


def _regions(k: int, ids: Sequence[int] | None, inputs: int) -> list[tuple[int, int]]:
    """Number of the input, and of the sample, of each region of output `k`."""
    return [(n, k) for n in range(inputs)] if ids is None else [(0, i) for i in ids]


@operator(
    "multi_paste",
    inputs=Input("images", "Images or sequences of them.", layouts=("HWC", "FHWC"), dtypes=PASTED),
    args=(
        Arg(
            "in_ids",
            IntListArg,
            None,
            "Numbers of the samples that an output is pasted together of, for a single input. Of "
            "sequences, these have as many frames as the sample of the output. Without it, it is "
            "the sample's own of each input.",
            per_sample=True,
            shape_of="(regions,)",
        ),
        Arg(
            "output_size",
            IntListArg,
            None,
            "Height and width of the output, in pixels. If not given, all images must have the "
            "same, and it is theirs.",
            per_sample=True,
            shape_of="(2,)",
        ),
        *(
            Arg(
                f"{name}{suffix}",
                _PlacesArg if not suffix else ArrayArg,
                None,
                f"The same as shares of the extents, from 0 to 1, rounded "
                f"{'up' if name == 'shapes' else 'down'}."
                if suffix
                else text,
                per_frame=True,
                shape_of="(regions, 2)",
            )
            for name, text in _PLACES.items()
            for suffix in ("", "_rel")
        ),
        Arg(
            "dtype",
            DataTypeArg,
            None,
            "Element type of the output; that of the input if not given.",
        ),
    ),
    output_docs=("What was pasted, in the layout of the input, and zeros around it.",),
    variadic=True,
    max_inputs=64,
)
class MultiPaste(BatchOperator):
    """Pastes regions of several images of a batch into each output, later ones above earlier ones.

    Examples
    --------
    Mosaics of four images of any samples:

    >>> ids = fn.random.uniform(range=(0, batch_size - 1), shape=4, dtype=types.INT32)
    >>> corners = np.array([[0, 0], [0, 200], [200, 0], [200, 200]])
    >>> fn.multi_paste(images, in_ids=ids, out_anchors=corners, output_size=(400, 400))
    """

    def infer(self, *images: Spec) -> Spec:
        first = images[0]
        for k, other in enumerate(images):
            if other.dtype != first.dtype:
                raise DataTypeError(
                    "All input batches must have the same data type: input 0 has "
                    f"{first.dtype.name}, input {k} {other.dtype.name}. `fn.cast` changes it."
                )
            if other.layout != first.layout:
                raise ShapeError(
                    f'All inputs must be images, or all sequences: input 0 is "{first.layout}", '
                    f'input {k} "{other.layout}".'
                )
        if self.given("in_ids") and len(images) > 1:
            raise MisusedArgumentError(
                "If `in_ids` is specified, the operator accepts exactly one input, got "
                f"{len(images)}. Leave one of them out."
            )
        for name in _PLACES:
            if self.given(name) and self.given(f"{name}_rel"):
                raise MisusedArgumentError(
                    f"`{name}` and `{name}_rel` cannot be specified together; give one of them."
                )
        dtype = first.dtype if self.args.dtype is None else self.args.dtype
        if dtype not in PASTED:
            raise DataTypeError(
                f"Unsupported output type {dtype.name} for `dtype`; supported are "
                f"{', '.join(each.name for each in PASTED)}."
            )
        self._sequences = first.layout == "FHWC"
        self._types = np.dtype(to_numpy_type(first.dtype)), np.dtype(to_numpy_type(dtype))
        self._convert = converter(*self._types)
        return first._replace(dtype=dtype)

    def _outputs(self, c: Any, shapes: Sequence[np.ndarray]) -> list[_PastedOutput]:
        """Outputs, as lists of regions; `shapes` are those of each input, ``(samples, ndim)``."""
        ids, sizes = (c.values(name) for name in ("in_ids", "output_size"))
        places = {n: c.values(n) for p in _PLACES for n in (p, f"{p}_rel") if self.given(n)}
        if not self.given("output_size"):
            extents = np.concatenate(shapes)[:, -3:-1]
            if (extents != extents[:1]).any():
                raise ShapeError(
                    "If the `output_size` is not specified, all the input samples must have the "
                    f"same shape. They have {np.unique(extents, axis=0)[:2].tolist()}."
                )
            sizes = [extents[0].tolist()] * c.size if len(extents) else []
        found: list[_PastedOutput] = []
        alike: dict[Any, _PastedOutput] = {}
        whole = [each.tolist() for each in shapes]
        for k in range(c.size):
            # With constant arguments, outputs of inputs of equal shapes differ in samples alone.
            key = None if self.given("in_ids") else str([each[k] for each in whole])
            if not self.tensor_args and key in alike:
                sources = _regions(k, None, len(shapes))
                found.append(alike[key]._replace(sources=sources))
                continue
            try:
                own = {name: values[k] for name, values in places.items()}
                found.append(self._output(k, ids[k], sizes[k], own, shapes))
            except Exception as error:
                raise c.located(error, k) from error
            if key is not None:
                alike[key] = found[-1]
        return found

    def _output(
        self,
        k: int,
        ids: Sequence[int] | None,
        size: Sequence[int],
        places: dict[str, np.ndarray],
        shapes: Sequence[np.ndarray],
    ) -> _PastedOutput:
        if len(size) < 2:
            raise ShapeError(f"The `output_size` should be (height, width), got {list(size)}.")
        if min(size[:2]) < 0:
            raise ArgumentValueError(f"The `output_size` must be non-negative, got {list(size)}.")
        count = len(shapes[0])
        wrong = [each for each in ids or () if not 0 <= each < count]
        if wrong:
            raise OutOfRangeError(
                f"The `in_ids` must be in range [0, {count - 1}], of samples of the batch, got "
                f"{wrong[0]}."
            )
        sources = _regions(k, ids, len(shapes))
        of_sources = np.array([shapes[n][i] for n, i in sources] or shapes[0][k : k + 1])
        if (of_sources[:, -1] != of_sources[0, -1]).any():
            raise ShapeError(
                "All regions pasted into given output sample must have the same number of "
                f"channels, got {np.unique(of_sources[:, -1]).tolist()}."
            )
        frames = int(shapes[0][k, 0]) if self._sequences else 1
        if self._sequences and (of_sources[:, 0] != frames).any():
            raise ShapeError(
                "What is pasted into a sequence must have its number of frames, "
                f"{frames}, got {of_sources[:, 0].tolist()}."
            )
        regions = len(sources)
        inside = of_sources[:regions, -3:-1]

        def corners(name: str, extents: np.ndarray, usual: Any) -> np.ndarray:
            """An argument in pixels, ``(frames, regions, 2)``."""
            relative = name not in places
            given = places.get(f"{name}_rel" if relative else name)
            if given is None:
                return np.broadcast_to(usual, (frames, regions, 2))
            allowed = [(regions, 2), *([(frames, regions, 2)] if self._sequences else [])]
            if given.shape not in allowed:
                raise ShapeError(
                    f"Unexpected shape for argument `{name}{'_rel' * relative}`: expected a row "
                    f"of two numbers for each of the {regions} regions, got {given.shape}."
                )
            if relative:
                if not ((given >= 0) & (given <= 1)).all():
                    raise ArgumentValueError(
                        f"The `{name}_rel` must be in range [0, 1], got {given.tolist()}."
                    )
                given = (np.ceil if name == "shapes" else np.floor)(given * extents)
            return np.broadcast_to(given, (frames, regions, 2)).astype(np.int64)

        extents = inside.astype(np.float32)
        out = np.array(size[:2])
        begins = corners("in_anchors", extents, 0)
        lengths = corners("shapes", extents, inside - begins)
        targets = corners("out_anchors", out.astype(np.float32), 0)
        for begin, whole, what in ((begins, inside, "its image"), (targets, out, "output bounds")):
            if ((begin < 0) | (lengths < 0) | (begin + lengths > whole)).any():
                raise OutOfRangeError(
                    f"The pasted region must be within {what}: regions of the shapes "
                    f"{lengths[0].tolist()} at {begin[0].tolist()} do not fit into "
                    f"{whole.tolist()}."
                )
        shape = (*out.tolist(), int(of_sources[0, -1]))
        return _PastedOutput(shape, sources, np.concatenate([begins, targets, lengths], axis=2))

    def origins(self, c: PlanContext, known: Sequence[Sequence[str]]) -> list[str]:
        return [
            ";".join(filter(None, (known[n][i] for n, i in _regions(k, ids, len(known)))))
            for k, ids in enumerate(c.values("in_ids"))
        ]

    def cpu(self, c: Any, *inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        shapes = [np.array([row.shape for row in rows]) for rows in inputs]
        found = []
        for k, (shape, sources, places) in enumerate(self._outputs(c, shapes)):
            out = c.empty(k, (len(places), *shape) if self._sequences else shape, self._types[1])
            out[...] = 0
            for f, frame in enumerate(places.tolist()):
                target = out[f] if self._sequences else out
                for (n, i), (y, x, v, u, height, width) in zip(sources, frame, strict=True):
                    source = inputs[n][i][f] if self._sequences else inputs[n][i]
                    part = target[v : v + height, u : u + width]
                    region = source[y : y + height, x : x + width]
                    if region.size and region.dtype != out.dtype:
                        converted = np.empty(region.shape, out.dtype)
                        self._convert(region, converted)
                        region = converted
                    part[...] = region
            found.append(out)
        return found

    def gpu(self, c: BatchContext, *inputs: DeviceBatch) -> DeviceBatch:
        outputs = self._outputs(c, [np.asarray(each.shapes) for each in inputs])
        frames = [len(output.places) for output in outputs]
        shapes = [
            (*((count,) if self._sequences else ()), *output.shape)
            for count, output in zip(frames, outputs, strict=True)
        ]
        out = c.empty(np.array(shapes, np.int64).reshape(c.size, inputs[0].ndim), self._types[1])
        sources = [
            (int(inputs[n].pointers[i]), *inputs[n].shapes[i, -3:-1].tolist())
            for output in outputs
            for n, i in output.sources
        ]
        _gpu.paste(c.queue, sources, [output.places for output in outputs], self._types[0], out)
        return out
