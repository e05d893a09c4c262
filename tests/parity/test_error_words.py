"""Errors say what DALI's say in the words that programs search their texts for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import pytest

from tests.parity.outcomes import DALI, HEADRACE, Library, assert_same
from tests.parity.words import Rows, Scenario, check_words, conditional, of, on

IMAGES = [np.zeros((40, 80, 3), np.uint8)] * 2
FLOATS = [np.float32([1, 2])] * 2
WHOLE = [np.int32([1, 2])] * 2
TRUTHS = [np.array([True, False])] * 2
ROWS_OF_5 = [np.zeros((5, 1), np.int64)] * 2
BOX = [np.zeros((10, 20, 30), np.uint8)]
PNG = cv2.imencode(".png", IMAGES[0])[1].ravel()
OUT = "out of bounds"
RAGGED = [np.uint8([1, 2, 3]), np.uint8([1, 2])]


def shaped(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    return [np.zeros(shape, np.uint8) for shape in shapes]


def drawn_axes(lib: Library, low: int, high: int) -> Any:
    return lib.fn.random.uniform(range=(low, high), shape=(2,), dtype=lib.types.INT32)


def whole(lib: Library, *samples: list[int]) -> Any:
    return lib.fn.external_source(lambda: [np.int32(sample) for sample in samples])


def box(lib: Library) -> Any:
    return lib.types.Constant(0.0, shape=[10, 10, 3], device="cpu")


NO_BOOLEANS = "to arithmetic operator `"
WINDOW = "slice can't be placed out of bounds with current policy. got:"
AXES = "out of range. expected range is [-3, 2] for a 3d input"
TOO_LARGE = {"crop": (80, 160), "out_of_bounds_policy": "error"}
EVERY_PATH = (
    "encountered inconsistent outputs out of the `if/else` control flow statement. variables need "
    "to be initialized in every code path (both `if` branches)."
)
USE_CONDITIONALS = (
    "to use conditional execution via `if` statements you need to specify "
    "`enable_conditionals=true` in"
)
BRANCHES = (
    "divergent data found in different branches of conditional operation. all paths in conditional "
    "operation are merged into one batch which must have consistent type, number of dimensions, "
    "layout and other metadata. found distinct"
)


def merged(dtype: str | None = None, **changed: Any) -> Scenario:
    """Branches of which one makes other data than the other."""

    def graph(lib: Library, x: Any) -> Any:
        given = {} if dtype is None else {"dtype": getattr(lib.types, dtype)}
        chosen = lib.fn.external_source(lambda: [np.array(True), np.array(False)])
        true, false = lib.fn._conditional.split(x, predicate=chosen)
        other = lib.fn.reinterpret(false, **given, **changed)
        return lib.fn._conditional.merge(true, other, predicate=chosen)

    return on(shaped((1, 2, 3), (1, 2, 3)), graph)


def region(lib: Library, *inputs: Any, **args: Any) -> Any:
    """A window for the region that begins at (1, 1)."""
    given = {"crop_shape": [2, 2], "roi_start": [1, 1], "roi_shape": [1, 1], **args}
    return lib.fn.roi_random_crop(*inputs, **given)


def masks(polygons: list[list[int]], ids: list[int]) -> Scenario:
    """What is selected of polygons that have three vertices."""

    def graph(lib: Library) -> Any:
        data = np.int32(ids), np.int32(polygons), np.zeros((3, 2), np.float32)
        return tuple(lib.fn.segmentation.select_masks(*data))

    return of(graph)


GENERIC: Rows = [
    (on(WHOLE, lambda lib, x: lib.fn.one_hot(x, axis_name="CD"), "A"), "unsupported axis_name"),
    (on(WHOLE, lambda lib, x: lib.fn.one_hot(x, axis_name=""), "A"), "unsupported axis_name value"),
    (on(ROWS_OF_5, lambda lib, x: lib.fn.one_hot(x, axis_name="O")), "input layout mismatch"),
    (on(IMAGES, lambda lib, x: lib.fn.crop(x, **TOO_LARGE), "HWC"), WINDOW),
    *(
        (
            on(IMAGES, lambda lib, x, n=name: lib.fn.crop(x, crop=(9, 9), **{n: -0.5}), "HWC"),
            f"anchor for dimension {axis}",
        )
        for axis, name in enumerate(("crop_pos_y", "crop_pos_x"))
    ),
    (on(IMAGES, lambda lib, x: lib.fn.crop(x, crop=(9, 9), crop_pos_x=2.0), "HWC"), "out of range"),
    *(
        (
            on([np.ones((5, 4), np.float32)], lambda lib, x, g=given: lib.fn.mfcc(x, **g)),
            words,
        )
        for given, words in (
            ({"dct_type": 1, "normalize": True}, "ortho-normalization is not supported for dct"),
            ({"axis": -1}, "provided axis cannot be negative"),
            ({"axis": 2}, "axis 2 is out of bounds [0,2)"),
            ({"dct_type": 10}, "unsupported dct type: 10. supported types are: 1, 2, 3, 4"),
        )
    ),
    *(
        (
            on(
                [np.zeros((2, 3), np.uint8)],
                lambda lib, x, m=element_map: lib.fn.element_extract(x, element_map=m),
            ),
            words,
        )
        for element_map, words in (
            ([2], "index `2` from `element_map` is out of bounds for sample with sequence length"),
            ([-1], "negative indices in `element_map` are not allowed"),
            ([], "element_map"),
        )
    ),
    (
        on(WHOLE, lambda lib, x: lib.fn.element_extract(x, element_map=[0])),
        "input must have at least two dimensions - outermost for sequence",
    ),
    (
        on(ROWS_OF_5, lambda lib, x: lib.fn.element_extract(x, element_map=[0]), "HW"),
        "input layout must describe a sequence - it must start with 'f', got 'hw' instead.",
    ),
    (
        on(IMAGES, lambda lib, x: lib.fn.paste(x, ratio=0.5, fill_value=0), "HWC"),
        "ratio of less than 1 is not supported",
    ),
    (
        on(shaped((2, 3, 4, 5)), lambda lib, x: lib.fn.paste(x, ratio=2, fill_value=0)),
        "the number of dimensions 4 does not match any of the allowed layouts",
    ),
    (
        on(shaped((2, 2, 3), (2, 3, 3)), lambda lib, x: lib.fn.multi_paste(x, x)),
        "is not specified, all the input samples must have the same shape.",
    ),
    (
        on(
            shaped((2, 2, 3), (2, 2, 1)),
            lambda lib, x: lib.fn.multi_paste(x, in_ids=np.int32([0, 1])),
        ),
        "all regions pasted into given output sample must have the same number of channels",
    ),
    (
        on(IMAGES, lambda lib, x: lib.fn.debayer(x)),
        "not all required arguments were specified",
    ),
    (
        on(
            shaped((3, 5, 5)),
            lambda lib, x: lib.fn.gaussian_blur(x, sigma=lib.fn.per_frame(np.float32([1, 2]))),
            "CHW",
        ),
        "for argument sigma is specified per frame (got f layout). in that case, samples in the",
    ),
    (
        on(IMAGES, lambda lib, x: lib.fn.gaussian_blur(x, window_size=whole(lib, [3], [-1]))),
        "`window_size` must have non-negative values, got -1 for sample: 1, axis",
    ),
    (
        on(IMAGES, lambda lib, x: lib.fn.gaussian_blur(x, sigma=0.0, window_size=0), "HWC"),
        "shouldn't be 0 at the same time for sample: 0, axis: 0.",
    ),
    (
        on(IMAGES, lambda lib, x: lib.fn.laplacian(x, scale=whole(lib, *[[3] * 3] * 2)), "HWC"),
        "argument scale for sample 0 is expected to have 1 or 2 elements, got: 3",
    ),
    (on(IMAGES, lambda lib, x: lib.fn.crop_mirror_normalize(x, **TOO_LARGE), "HWC"), WINDOW),
    (
        on(IMAGES, lambda lib, x: lib.fn.slice(x, start=[0], end=[4], shape=[3], axes=[0])),
        '"end", "rel_end", "shape", and "rel_shape" arguments are mutually exclusive',
    ),
    (
        on(IMAGES, lambda lib, x: lib.fn.crop(x, crop=(10, 10)), "ABC"),
        'the layout "abc" does not match any of the allowed layouts',
    ),
    (of(lambda lib: lib.fn.pad(box(lib), axes=drawn_axes(lib, -10, -4))), AXES),
    (of(lambda lib: lib.fn.pad(box(lib), axes=drawn_axes(lib, 3, 10))), AXES),
    (
        of(
            lambda lib: lib.fn.slice(
                box(lib), rel_start=[0.1, 0.1], rel_shape=[0.4, 0.5], axes=drawn_axes(lib, 3, 10)
            )
        ),
        AXES,
    ),
    (
        on(IMAGES, lambda lib, x: lib.fn.pad(x, axis_names="H", align=0), "HWC"),
        "values of `align` argument must be positive.",
    ),
    (
        on(BOX, lambda lib, x: lib.fn.expand_dims(x, axes=[4])),
        "data has not enough dimensions to add new axes at specified indices.",
    ),
    (on(BOX, lambda lib, x: lib.fn.expand_dims(x, axes=[0, -1])), "axis value can't be negative"),
    (
        on(BOX, lambda lib, x: lib.fn.expand_dims(x, axes=[2, 0, 2], new_axis_names="AB"), "XYZ"),
        "specified 3 new dimensions, but layout contains only 2 new dimension names",
    ),
    (
        on(BOX, lambda lib, x: lib.fn.expand_dims(x, axes=[2], new_axis_names="C")),
        "specifying ``new_axis_names`` requires an input with a proper layout.",
    ),
    (
        on(WHOLE, lambda lib, x: lib.fn.permute_batch(x, indices=[0, 10])),
        "is not a valid index for an input batch of",
    ),
    (
        on([np.float32(1)] * 2, lambda lib, x: lib.fn.per_frame(x)),
        "cannot mark zero-dimensional input as a sequence",
    ),
    (
        on(ROWS_OF_5, lambda lib, x: lib.fn.per_frame(x), "XY"),
        "argument input must be a sequence. the input layout should start with 'f'",
    ),
    (on(WHOLE, lambda lib, x: lib.fn.get_property(x, key="size")), "unsupported property key"),
    (
        on(WHOLE, lambda lib, x: lib.fn.reductions.sum(x, axes=-100)),
        "axis index out of range",
    ),
    (
        on(shaped((30, 1, 20), (10, 10, 10)), lambda lib, x: lib.fn.squeeze(x, axes=[1])),
        "requested a shape with 100 elements but the original shape has 1000 elements.",
    ),
    (
        on(shaped((2, 3, 4)), lambda lib, x: lib.fn.squeeze(x, axis_names="C"), "XYZ"),
        "axis 'c' is not present in the input layout",
    ),
    (
        on(shaped((1, 10)), lambda lib, x: lib.fn.squeeze(x, axes=[0], axis_names="X"), "XY"),
        "provided both ``axes`` and ``axis_names`` arguments",
    ),
    (
        on(shaped((3, 1)), lambda lib, x: lib.fn.squeeze(x, axes=[1, 1])),
        "specified at least twice same dimension to remove.",
    ),
    (
        on(shaped((20, 10, 20)), lambda lib, x: lib.fn.reshape(x, src_dims=[2, 0])),
        "requested a shape with 400 elements but the original shape has 4000 elements.",
    ),
    (on(shaped((1, 2, 3)), lambda lib, x: lib.fn.reshape(x, src_dims=[0, 3])), "is out of bounds"),
    (
        on(shaped((4, 6)), lambda lib, x: lib.fn.reshape(x, rel_shape=[1, -1, 1])),
        "`rel_shape` has more elements (3) than",
    ),
    (
        on(shaped((4, 6), (32, 0)), lambda lib, x: lib.fn.reshape(x, rel_shape=[-1, 1])),
        "is 0. input shape: 32 x 0",
    ),
    (on(RAGGED, lambda lib, x: x[2]), "out of range"),
    (on(RAGGED, lambda lib, x: x[1, :]), "too many indices"),
    (on(RAGGED, lambda lib, x: x[:, :, lib.newaxis]), "not enough dimensions"),
    (on(RAGGED, lambda lib, x: x[::0]), "step cannot be zero"),
    (
        on(shaped((1, 2, 3)), lambda lib, x: lib.fn.reshape(x, src_dims=[2, 0], rel_shape=[1])),
        "`src_dims` and `rel_shape` have different lengths: 2 vs 1",
    ),
    (merged(dtype="INT8"), f"{BRANCHES} types"),
    (merged(layout="HWC"), f"{BRANCHES} layouts"),
    (merged(shape=[6]), f"{BRANCHES} sample dimensions"),
    (
        on(FLOATS, lambda lib, x: lib.fn.to_decibels(x, reference=0.0)),
        "`reference` argument can't be zero",
    ),
    (of(lambda lib: region(lib, roi_end=[2, 2])), "either roi end or roi shape should be defined"),
    (
        of(lambda lib: region(lib, crop_shape=[1, -1], in_shape=[4, 4])),
        "crop shape can't be negative",
    ),
    (of(lambda lib: region(lib, in_shape=[-4, 4])), "input shape can't be negative"),
    *(
        (of(lambda lib, a=args: region(lib, in_shape=[4, 4], **a)), f"roi can't be {OUT}.")
        for args in ({"roi_start": [-1, -1]}, {"roi_start": [2, 4]}, {"roi_shape": [1, 4]})
    ),
    (
        of(lambda lib: region(lib, in_shape=[4, 4], crop_shape=[9, 9])),
        "cropping shape can't be bigger than the input shape.",
    ),
    *(
        (on([PNG], lambda lib, x, f=f, a=a: getattr(lib.fn.decoders, f)(x, **a)), words)
        for f, a in (
            ("image_crop", {"crop": (90, 100)}),
            ("image_slice", {"start": [3, 4], "shape": [90, 80], "axes": [0, 1]}),
        )
        for words in ("cropping window ", "is not valid for image dimensions")
    ),
    (
        on(shaped((4, 4)), lambda lib, x: region(lib, x, in_shape=[4, 4])),
        "``in_shape`` argument is incompatible with providing an input.",
    ),
    (masks([[0, 0, 2]], [7]), "selected mask_id 7 is not present in the input."),
    (
        masks([[0, 0, 2, -1]], [0]),
        "is expected to contain 2d tensors with 3 columns: ``mask_id, start_idx, end_idx``. got 4",
    ),
    (masks([[0, 0, 20]], [0]), "to be within the range of available vertices [0, 3)"),
]
SEQUENCES: Rows = [
    (
        on(ROWS_OF_5, lambda lib, x: lib.fn.sequence_rearrange(x, new_order=[6, 7])),
        "new_order[0] must be between",
    ),
    (
        on(ROWS_OF_5, lambda lib, x: lib.fn.sequence_rearrange(x, new_order=[0, -1])),
        "input_sequence_length = 5 for sample 0, but it is: -1",
    ),
    (
        on(ROWS_OF_5, lambda lib, x: lib.fn.sequence_rearrange(x, new_order=whole(lib, [0], [7]))),
        "input_sequence_length = 5 for sample 1, but it is: 7",
    ),
    (
        on(ROWS_OF_5, lambda lib, x: lib.fn.sequence_rearrange(x, new_order=whole(lib, [0], []))),
        "empty `new_order` for sample 1 is not allowed",
    ),
    (
        on(ROWS_OF_5, lambda lib, x: lib.fn.sequence_rearrange(x, new_order=[])),
        "empty result sequences are not allowed",
    ),
    (
        on(ROWS_OF_5, lambda lib, x: lib.fn.sequence_rearrange(x, new_order=[0]), "HW"),
        'outermost dimension represents frames dimension `f`, got data with layout = "hw"',
    ),
]
CHOICES: Rows = [
    (of(lambda lib: lib.fn.random.beta(alpha=np.ones((2, 2)))), "cannot be converted"),
    (of(lambda lib: lib.fn.random.normal(mean=np.ones(2))), "cannot be converted"),
    (
        of(lambda lib: lib.fn.random.choice(1, p=1.5)),
        "but got: 1.5 for sample: 0 at index 0.",
    ),
    (
        of(lambda lib: lib.fn.random.choice(3, p=[0.25])),
        "sum of probabilities must be 1.0, but got 0.75 for sample: 0.",
    ),
    (
        of(lambda lib: lib.fn.random.choice(-5)),
        "expected positive number of elements for sampling, got: -5 for sample: 0.",
    ),
    (
        of(lambda lib: lib.fn.random.choice(np.float64(5.0))),
        "is not supported for 0d inputs. supported types are: uint8, uint16, uint32,",
    ),
    (
        of(lambda lib: lib.fn.random.choice(lib.types.INTERP_CUBIC)),
        "data type daliinterptype is not supported for 0d inputs.",
    ),
    (
        of(lambda lib: lib.fn.random.choice(5, p=[0.25, 0.5, 0.25])),
        'argument "p"',
    ),
    (
        of(lambda lib: lib.fn.cast(lib.types.RGB, dtype=lib.types.FLOAT)),
        "enums can only participate in casts with integral types",
    ),
    (
        of(lambda lib: lib.fn.cast(1.0, dtype=lib.types.DATA_TYPE)),
        "enums can only participate in casts with integral types",
    ),
]
ARITHMETIC: Rows = [
    *(
        (on(TRUTHS, lambda lib, x, f=name: getattr(lib.math, f)(x)), NO_BOOLEANS)
        for name in ("sqrt", "log2", "floor", "sin", "atanh")
    ),
    (on(TRUTHS, lambda lib, x: x + x), "cannot be boolean"),
    (on(TRUTHS, lambda lib, x: x - True), "consider using bitwise operator"),
    (on(TRUTHS, lambda lib, x: x**x), NO_BOOLEANS),
    (on(TRUTHS, lambda lib, x: lib.math.clamp(x, x, x)), NO_BOOLEANS),
    (on(FLOATS, lambda lib, x: x & x), "must be of integral type"),
    (on(WHOLE, lambda lib, x: x << 2.0), "must be of integral type"),
    (on(FLOATS, lambda lib, x: ~x), "inputs to bitwise operator `"),
    (on(RAGGED, lambda lib, x: x + np.zeros((5, 7))), "can't broadcast shapes"),
    (on(WHOLE, lambda lib, x: x < [x]), "input 1 of operator `<` must be"),
    (on(WHOLE, lambda lib, x: [x] - x), "got a `list` with nested"),
    (on(WHOLE, lambda lib, x: lib.math.max([x, x], 5)), "input 0 of operator `max` must be"),
]


def wrong_branches(lib: Library) -> Any:
    """A definition with a condition that is not a number."""

    def definition() -> Any:
        drawn = lib.fn.random.coin_flip(dtype=lib.types.BOOL)
        if lib.fn.stack(drawn, drawn):
            found = np.array(1)
        else:
            found = np.array(0)
        return found

    return conditional(lib, definition).run()


def one_branch(lib: Library) -> Any:
    """A definition that gives a variable a value in one branch."""

    def definition() -> Any:
        if lib.fn.random.coin_flip():
            output = lib.fn.random.uniform()
        return output

    return conditional(lib, definition)


def one_return(lib: Library) -> Any:
    """A definition that returns in one branch."""

    def definition() -> Any:  # noqa: RET503 - what is tested
        if lib.fn.random.coin_flip():
            return lib.fn.random.uniform()

    return conditional(lib, definition)


def other_keys(lib: Library) -> Any:
    """A definition whose branches make dictionaries with different keys."""

    def definition() -> Any:
        if lib.fn.random.coin_flip():
            found = {"image": np.array(2), "label": np.array(3)}
        else:
            found = {"image": np.array(1)}
        return found["image"]

    return conditional(lib, definition)


def typed(**settings: Any) -> Scenario:
    """A pipeline that returns images, whose outputs are checked."""
    return lambda lib: lib.source(
        IMAGES, **{k: v(lib) if callable(v) else v for k, v in settings.items()}
    ).run()


def outputs(graph: Callable[[Library], Any]) -> Scenario:
    def scenario(lib: Library) -> None:
        pipe = lib.Pipeline(1, 1, None)
        pipe.set_outputs(graph(lib))
        pipe.build()

    return scenario


def changing(*batches: Any) -> Scenario:
    """A pipeline whose source's second batch is of another kind than the first."""

    def scenario(lib: Library) -> None:
        pipe = lib.pipe(lambda: lib.fn.external_source(list(batches)))
        pipe.run(), pipe.run()

    return scenario


def without_its_gpu(definition: Callable[[Library], Any]) -> Scenario:
    """A pipeline for a GPU that is not there, whose definition is wrong, too."""

    def scenario(lib: Library) -> None:
        class Defined(lib.Pipeline):
            def define_graph(self) -> Any:
                return definition(lib)

        Defined(1, 1, 1000).build()

    return scenario


A_SOURCE = "the `source` callable must accept either 0 or 1 positional arguments to indicate"
PIPELINES: Rows = [
    (without_its_gpu(lambda lib: "text"), "illegal output type. the output 0 is a"),
    (
        without_its_gpu(lambda lib: min(lib.fn.copy(1), lib.fn.copy(2))),
        '"datanode" was used in conditional context',
    ),
    (
        changing(FLOATS, WHOLE),
        "type in the previous iteration was float and the current type is int32",
    ),
    (
        changing(FLOATS, [x[None] for x in FLOATS]),
        "dimensionality in the previous iteration was 1 and the current is 2",
    ),
    (
        of(lambda lib: lib.fn.external_source(source=(each for each in [FLOATS]), cycle=True)),
        "pass that function instead as `source`.",
    ),
    (
        of(lambda lib: lib.fn.external_source(lambda: FLOATS, ndim=2, layout="HWC")),
        'match the ndim argument. the arguments provided:\n ndim = 2,\n layout: "hwc"',
    ),
    *(
        (of(lambda lib, s=source: lib.fn.external_source(s)), found)
        for source, found in (
            (lambda a, b: FLOATS, A_SOURCE),
            (lambda a, b: FLOATS, "found more than one positional argument, which is not allowed"),
            (lambda *several: FLOATS, "found var-positional argument `*several` which is not"),
            (lambda i, *, key=1: FLOATS, "found keyword-only argument `key` which is not allowed"),
            (lambda **others: FLOATS, "found var-keyword argument `**others` which is not"),
        )
    ),
    (
        of(lambda lib: lib.fn.copy(lib.fn.random.uniform().gpu())),
        "the pipeline requires a cuda-capable gpu but",
    ),
    (
        of(lambda lib: lib.fn.external_source(lambda: FLOATS, dtype=lib.types.UINT8)),
        "externalsource expected data of type uint8 and got: float",
    ),
    (
        of(lambda lib: lib.fn.external_source(lambda: FLOATS, ndim=3)),
        "externalsource expected data with 3 dimensions and got 1 dimensions",
    ),
    (
        on(
            FLOATS,
            lambda lib, x: lib.fn.python_function(x, function=lambda v: [v], num_outputs=2)[0],
        ),
        "must be a tuple",
    ),
    (
        on(
            FLOATS,
            lambda lib, x: lib.fn.dl_tensor_python_function(
                x, function=lambda v: (v, v, v), num_outputs=2
            )[0],
        ),
        "unexpected number of outputs",
    ),
    (
        on(IMAGES, lambda lib, x: x + lib.fn.reshape(x, layout="HWA"), "HWC"),
        "they must be equal or one must be a suffix",
    ),
    (wrong_branches, "restricted to scalar (0-d tensors) inputs"),
    (one_branch, f"{EVERY_PATH} variable 'output' must also be initialized in the `else` branch."),
    (one_return, f"{EVERY_PATH} the `else` branch must also have a return statement."),
    (other_keys, "need to have the same nesting structure in every code path (both `if` branches)"),
    (of(lambda lib: 1 if lib.fn.random.coin_flip() else 2), USE_CONDITIONALS),
    (on(WHOLE, lambda lib, x: min(x, x)), '"datanode" was used in conditional context'),
    (
        outputs(lambda lib: lib.fn.external_source([[WHOLE, WHOLE]], num_outputs=2)),
        "illegal pipeline output type. the output 0 contains a nested `datanode`",
    ),
    (
        outputs(lambda lib: "text"),
        "illegal output type. the output 0 is a `<class 'str'>`.",
    ),
    (typed(output_ndim=-1), "must be non-negative"),
    (typed(output_dtype=lambda lib: lib.types.NO_TYPE), "types.no_type"),
    (typed(output_dtype=lambda lib: [lib.types.FLOAT]), "data type"),
    (typed(output_ndim=2), "number of dimensions"),
    (typed(output_ndim=[3, 3]), "do not match"),
    (
        of(lambda lib: lib.fn.cat([lib.fn.copy(1)] * 3, [lib.fn.copy(2)] * 2)[0]),
        "all argument lists for multiple input sets used with operator `",
    ),
    (
        of(lambda lib: lib.fn.python_function([lib.fn.copy(1)] * 2, function=abs)[0]),
        "do not support multiple input sets",
    ),
    (
        of(lambda lib: lib.fn.python_function(function=list, output_layouts=["HW", "C"])),
        "is greater than",
    ),
    (
        on(
            IMAGES,
            lambda lib, x: lib.fn.crop_mirror_normalize(
                x, dtype=lib.types.FLOAT, output_dtype=lib.types.FLOAT
            ),
            "HWC",
        ),
        "unexpected",
    ),
    (lambda lib: lib.TensorListCPU(np.zeros((3, 5)))[3], "out of range"),
    (lambda lib: lib.TensorListCPU(np.zeros((3, 5)))[-4], "out of range"),
    (
        lambda lib: lib.TensorListCPU([lib.TensorCPU(np.zeros(1, t)) for t in "fi"]),
        "tensors cannot have different data types. tensor at position 1 has type '",
    ),
    (
        lambda lib: lib.TensorListCPU([lib.TensorCPU(np.zeros(1)), object()]),
        "object at position 1 cannot be converted to tensor",
    ),
    (
        lambda lib: lib.types.ScalarConstant(lib.types.INT16),
        "expected scalar value of type 'bool', 'int' or 'float', got ",
    ),
]


@pytest.mark.parametrize(
    "rows",
    [GENERIC, SEQUENCES, CHOICES, ARITHMETIC, PIPELINES],
    ids=["generic", "sequences", "choices", "arithmetic", "pipelines"],
)
def test_both_say_it(rows):
    check_words(rows)


@pytest.mark.parametrize("dtype", ["DATA_TYPE", "INTERP_TYPE", "FLOAT", "INT8", "BOOL", "UINT64"])
def test_enumerations_are_cast_like_integers(dtype):
    def scenario(lib):
        to, image_type = getattr(lib.types, dtype), lib.types.YCbCr
        values = {"whole": 3, "small": np.int8(1), "member": image_type, "fraction": 1.0}
        found = {}
        for name, value in values.items():
            try:
                batch = lib.pipe(lambda v=value: lib.fn.cast(v, dtype=to)).run()[0]
                found[name] = batch.dtype, batch.shape()
            except Exception as error:
                found[name] = isinstance(error, RuntimeError) or repr(error)
        return found

    assert_same(scenario)


def test_logical_expressions_say_what_they_got():
    def logical(expression, made):
        def scenario(lib):
            def define():
                data = lib.fn.external_source(lambda: made)
                return not data if expression == "not" else data and data

            return conditional(lib, define).run()

        return scenario

    def condition(lib):
        def define():
            if lib.fn.external_source(lambda: TRUTHS * 2):
                return 1
            return 2

        return conditional(lib, define).run()

    check_words(
        [
            (logical("not", TRUTHS * 2), "that are placed on cpu. got a 1-d input"),
            (logical("and", TRUTHS * 2), "that are placed on cpu. got a 1-d input"),
            (logical("and", [np.int32(1)] * 4), "got an input of type `int32`"),
            (condition, "got a 1-d input as a condition of the `if` statement"),
        ]
    )


def test_unused_outputs_of_a_source_are_told():
    def my_source():
        return FLOATS, FLOATS, FLOATS

    for used, words in ((1, "outputs at the indices 1, 2 are"), (2, "output at the index 2 is")):
        for lib in (DALI, HEADRACE):
            pipe = lib.pipe(
                lambda lib=lib, used=used: tuple(
                    lib.fn.external_source(my_source, num_outputs=3)[:used]
                )
            )
            with pytest.warns(Warning, match=f"my_source.*' produces 3 outputs, but the {words}"):
                pipe.build()


def test_deprecated_arguments_are_told_in_the_same_words():
    told = [[], []]
    for texts, lib in zip(told, (DALI, HEADRACE), strict=True):
        for given in ({"image_type": lib.types.RGB}, {"output_dtype": lib.types.FLOAT}):
            with pytest.warns(DeprecationWarning, match="argument") as caught:
                of(lambda lib, g=given: lib.fn.crop(IMAGES[0], crop=(2, 2), **g))(lib)
            texts.append([str(w.message) for w in caught])
    assert told[0] == told[1]


def test_one_probability_is_that_of_every_choice():
    for p in (0.25, [0.25], np.float32([0.25])):
        assert_same(
            lambda lib, p=p: lib.pipe(lambda: lib.fn.random.choice(4, p=p)).run()[0].shape()
        )
