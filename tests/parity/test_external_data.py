"""The data of external sources beside DALI's: kinds of arrays, layouts, sizes, what changes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parity.outcomes import Table, assert_differs, assert_same, attempt

torch = pytest.importorskip("torch")


def array(k, batch=2):
    return np.full((batch, 1), k, np.int32)


data = Table()


def batch(make, **keywords):
    """A scenario: one batch of what ``make(lib)`` makes, from a source and fed."""

    def scenario(lib):
        value = make(lib)
        from_source = lib.pipe(lambda: lib.fn.external_source(source=lambda: value, **keywords))
        fed = lib.pipe(lambda: lib.fn.external_source(name="x", **keywords))
        fed.feed_input("x", value)
        return from_source.run(), fed.run()

    return scenario


def sample(make, **keywords):
    """A scenario: one batch whose samples are what ``make(lib)`` makes."""
    return lambda lib: lib.pipe(
        lambda: lib.fn.external_source(source=lambda: make(lib), batch=False, **keywords)
    ).run()


def from_source(make):
    """A scenario: one batch of what ``make()`` makes, from a source only."""
    # The stream keeps DALI from asking PyTorch for one of a GPU.
    return lambda lib: lib.pipe(lambda: lib.fn.external_source(source=make, cuda_stream=0)).run()


class ArrayInterface:
    def __init__(self, values):
        self.values = np.ascontiguousarray(values)
        self.__array_interface__ = self.values.__array_interface__


class OnlyArray:
    def __array__(self, dtype=None, copy=None):
        return array(1)


class OnlyDLPack:
    def __init__(self, values):
        self.values = values

    def __dlpack__(self, **keywords):
        return self.values.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


NUMPY_TYPES = "?bBhHiIlLqQefd"


data(
    **{
        f"array_{np.dtype(t).name}_{t}": batch(lambda lib, t=t: np.array([[1, 0], [2, 3]], t))
        for t in NUMPY_TYPES
    },
    **{
        f"list_{np.dtype(t).name}_{t}": batch(
            lambda lib, t=t: [np.array([1, 0], t), np.array([2], t)]
        )
        for t in NUMPY_TYPES
    },
    **{
        f"numpy_scalars_{np.dtype(t).name}_{t}": batch(lambda lib, t=t: list(np.array([1, 0], t)))
        for t in NUMPY_TYPES
    },
    masked=batch(lambda lib: np.ma.masked_array(np.arange(4).reshape(2, 2))),
    record_array=batch(lambda lib: np.arange(4).reshape(2, 2).view(np.recarray)),
    memory_mapped=batch(lambda lib: np.arange(4).reshape(2, 2).view(np.memmap)),
    array_0d=batch(lambda lib: np.array(3)),
    array_1d=batch(lambda lib: np.array([1, 2])),
    list_0d=batch(lambda lib: [np.array(1), np.array(2)]),
    tuple_=batch(lambda lib: (np.array([1]), np.array([2]))),
    ragged=batch(lambda lib: [np.zeros((1, 2)), np.zeros((3, 1))]),
    zero_size=batch(lambda lib: np.zeros((2, 0, 3), np.uint8)),
    zero_size_in_a_list=batch(lambda lib: [np.zeros((0, 3)), np.zeros((2, 3))]),
    smaller_batch=batch(lambda lib: array(1, 1)),
    larger_batch=batch(lambda lib: array(1, 3)),
    larger_list=batch(lambda lib: [np.zeros(1)] * 3),
    mixed_ndim=batch(lambda lib: [np.zeros(1), np.zeros((1, 1))]),
    mixed_dtype=batch(lambda lib: [np.zeros(1), np.zeros(1, np.int32)]),
    read_only=batch(lambda lib: np.frombuffer(b"\1\2\3\4", np.uint8).reshape(2, 2)),
    read_only_in_a_list=batch(lambda lib: [np.frombuffer(b"\1\2", np.uint8)] * 2),
    transposed_but_contiguous=batch(lambda lib: np.arange(6).reshape(2, 3, 1).transpose(0, 1, 2)),
    objects=batch(lambda lib: np.array([[object()], [object()]])),
    texts=batch(lambda lib: np.array(["a", "b"])),
    byte_strings=batch(lambda lib: np.array([b"a", b"b"])),
    none=batch(lambda lib: None),
    list_of_none=batch(lambda lib: [None, None]),
    number=batch(lambda lib: 3),
    text=batch(lambda lib: "ab"),
    dictionary=batch(lambda lib: {0: array(1)}),
    an_object=batch(lambda lib: object()),
    memory_view_of_bytes=batch(lambda lib: [np.frombuffer(b"abc", np.uint8)] * 2),
    with_array_interface=batch(lambda lib: ArrayInterface(array(1))),
    with_array_interface_in_a_list=batch(lambda lib: [ArrayInterface(np.arange(2))] * 2),
    torch_samples=sample(lambda lib: torch.arange(4), cuda_stream=0),
    torch_batches=from_source(lambda: torch.arange(4).reshape(2, 2)),
    torch_lists=from_source(lambda: [torch.arange(4), torch.arange(3)]),
    torch_numbers=from_source(lambda: [torch.tensor(1.5), torch.tensor(2.5)]),
    torch_half=from_source(lambda: torch.ones(2, 1, dtype=torch.float16)),
    torch_bool=from_source(lambda: torch.ones(2, 1, dtype=torch.bool)),
    torch_bfloat16=from_source(lambda: torch.ones(2, 1, dtype=torch.bfloat16)),
    torch_requires_grad=from_source(lambda: torch.ones(2, 1, requires_grad=True)),
    torch_capsules=from_source(lambda: torch.utils.dlpack.to_dlpack(torch.ones(2, 3))),
    capsules=sample(lambda lib: torch.utils.dlpack.to_dlpack(torch.arange(4))),
    tensor=batch(lambda lib: lib.TensorCPU(np.arange(4).reshape(2, 2))),
    tensors=batch(lambda lib: [lib.TensorCPU(np.arange(4)), lib.TensorCPU(np.arange(3))]),
    tensors_layout=batch(lambda lib: [lib.TensorCPU(np.arange(k), layout="A") for k in (2, 3)]),
    tensors_different_layouts=batch(
        lambda lib: [lib.TensorCPU(np.arange(2), layout=c) for c in "AB"]
    ),
    tensors_some_layouts=batch(
        lambda lib: [lib.TensorCPU(np.arange(2), layout=c) for c in ("A", "")]
    ),
    tensors_layout_given=batch(
        lambda lib: [lib.TensorCPU(np.arange(k)) for k in (2, 3)], layout="A"
    ),
    tensor_list=batch(lambda lib: lib.TensorListCPU(np.arange(4).reshape(2, 2))),
    tensor_list_layout=batch(lambda lib: lib.TensorListCPU(np.arange(4).reshape(2, 2), layout="A")),
    tensor_list_ragged=batch(
        lambda lib: lib.TensorListCPU([lib.TensorCPU(np.arange(k)) for k in (2, 3)])
    ),
    tensor_list_layout_declared=batch(
        lambda lib: lib.TensorListCPU(np.arange(4).reshape(2, 2), layout="A"), layout="A"
    ),
    tensor_list_of_a_pipeline=batch(
        lambda lib: lib.pipe(lambda: lib.types.Constant([1, 2])).run()[0]
    ),
    sample_array=sample(lambda lib: np.arange(3)),
    sample_0d=sample(lambda lib: np.array(3)),
    sample_numpy_scalar=sample(lambda lib: np.int16(3)),
    sample_tensor=sample(lambda lib: lib.TensorCPU(np.arange(3))),
    sample_tensor_layout=sample(lambda lib: lib.TensorCPU(np.arange(3), layout="A")),
    sample_none=sample(lambda lib: None),
    sample_text=sample(lambda lib: "a"),
    sample_empty=sample(lambda lib: np.zeros((0, 2))),
    sample_layout=sample(lambda lib: np.zeros((1, 2)), layout="HW"),
    sample_layout_wrong=sample(lambda lib: np.zeros((1, 2)), layout="HWC"),
)


def changing(*values, **keywords):
    """A scenario: batches one after the other, up to the first error."""

    def scenario(lib):
        pipe = lib.pipe(
            lambda: lib.fn.external_source(source=list(values), **keywords),
            batch_size=4,
            prefetch_queue_depth=1,
        )
        return [attempt(pipe.run) for _ in values]

    return scenario


data(
    dtype_changes=changing(np.zeros((2, 1), np.uint8), np.zeros((2, 1), np.float32)),
    ndim_changes=changing(np.zeros((2, 1)), np.zeros((2, 1, 1))),
    shape_changes=changing(np.zeros((2, 1)), np.zeros((2, 3)), [np.zeros(1), np.zeros(2)]),
    batch_size_changes=changing(np.zeros((1, 2)), np.zeros((4, 2)), np.zeros((2, 2))),
    batch_size_too_large=changing(np.zeros((4, 2)), np.zeros((5, 2))),
    dtype_changes_as_declared=changing(np.zeros((2, 1)), np.zeros((2, 1), np.int32), ndim=1),
)


@data
def layout_changes(lib):
    pipe = lib.pipe(lambda: lib.fn.external_source(name="x"), prefetch_queue_depth=1)

    def feed(layout):
        pipe.feed_input("x", array(1), layout=layout)
        return pipe.run()

    return [attempt(feed, layout) for layout in "AAB"]


@data
def layout_goes(lib):
    pipe = lib.pipe(lambda: lib.fn.external_source(name="x"), prefetch_queue_depth=1)

    def feed(**keywords):
        pipe.feed_input("x", array(1), **keywords)
        return pipe.run()

    return attempt(feed, layout="A"), attempt(feed)


@data
def layout_comes(lib):
    pipe = lib.pipe(lambda: lib.fn.external_source(name="x"), prefetch_queue_depth=1)

    def feed(**keywords):
        pipe.feed_input("x", array(1), **keywords)
        return pipe.run()

    return attempt(feed), attempt(feed, layout="A")


def fed(value, declared=None, **keywords):
    """A scenario: `feed_input` of a batch with a layout."""

    def scenario(lib):
        pipe = lib.pipe(
            lambda: lib.fn.external_source(name="x", **(declared or {})), prefetch_queue_depth=1
        )
        pipe.feed_input("x", value(lib), **keywords)
        return pipe.run()

    return scenario


data(
    fed_layout=fed(lambda lib: array(1), layout="A"),
    fed_layout_too_long=fed(lambda lib: array(1), layout="AB"),
    fed_layout_as_declared=fed(lambda lib: array(1), {"layout": "A"}, layout="A"),
    fed_layout_against_declared=fed(lambda lib: array(1), {"layout": "A"}, layout="B"),
    fed_layout_number=fed(lambda lib: array(1), layout=3),
    fed_layout_empty=fed(lambda lib: array(1), {"layout": "A"}, layout=""),
    fed_list_against_declared=fed(lambda lib: [np.zeros(1)] * 2, {"layout": "A"}, layout="B"),
    fed_tensor_list_with_a_layout=fed(lambda lib: lib.TensorListCPU(array(1), layout="A")),
    fed_tensor_list_with_another=fed(
        lambda lib: lib.TensorListCPU(array(1), layout="A"), layout="B"
    ),
    fed_tensor_list_against_declared=fed(
        lambda lib: lib.TensorListCPU(array(1), layout="A"), {"layout": "B"}
    ),
    fed_tensors_with_another=fed(
        lambda lib: [lib.TensorCPU(np.zeros(1), layout="A")] * 2, layout="B"
    ),
    fed_tensors_against_declared=fed(
        lambda lib: [lib.TensorCPU(np.zeros(1), layout="A")] * 2, {"layout": "B"}
    ),
    fed_dtype_mismatch=lambda lib: fed(lambda lib: array(1), {"dtype": lib.types.FLOAT})(lib),
    fed_ndim_mismatch=fed(lambda lib: array(1), {"ndim": 2}),
    fed_stream=fed(lambda lib: array(1), cuda_stream=1),
    fed_copy_kernel=fed(lambda lib: array(1), use_copy_kernel=True),
)


@data
def source_of_tensor_lists_against_declared(lib):
    value = lib.TensorListCPU(array(1), layout="A")
    return lib.pipe(lambda: lib.fn.external_source(source=lambda: value, layout="B")).run()


@data
def batch_size_clash(lib):
    pipe = lib.pipe(
        lambda: (
            lib.fn.external_source(source=lambda: array(1, 1)),
            lib.fn.external_source(source=lambda: array(1, 2)),
        )
    )
    return pipe.run()


@data
def copied_or_not(lib):
    found = []
    for no_copy in (False, True):
        buffer = array(0)

        def source(index, buffer=buffer):
            buffer[:] = index
            return buffer

        pipe = lib.pipe(
            lambda no_copy=no_copy, source=source: lib.fn.external_source(
                source=source, no_copy=no_copy
            ),
            prefetch_queue_depth=1,
        )
        found.append([pipe.run() if not no_copy else bool(pipe.run()) for _ in range(3)])
    return found


@data
def repeat_last_as_needed(lib):
    pipe = lib.pipe(lambda: lib.fn.external_source(name="x", repeat_last=False))
    pipe.feed_input("x", array(1))
    return pipe.run()


@pytest.mark.parametrize("name", data)
def test_data(name):
    assert_same(data[name])


NOT_CONTIGUOUS = {
    "transposed": np.arange(12).reshape(2, 3, 2).transpose(0, 2, 1),
    "fortran": np.asfortranarray(np.arange(12, dtype=np.float32).reshape(2, 3, 2)),
    "reversed": np.arange(12, dtype=np.uint8).reshape(2, 3, 2)[::-1, ::-1, ::-1],
    "every second": np.arange(24, dtype=np.int16).reshape(2, 3, 4)[:, :, ::2],
    "broadcast": np.broadcast_to(np.arange(3), (2, 2, 3)),
}


@pytest.mark.sweep(pairs=True)
@pytest.mark.parametrize("name", NOT_CONTIGUOUS)
@pytest.mark.parametrize("form", ["array", "list", "samples", "fed"])
@pytest.mark.parametrize("no_copy", [False, True])
def test_data_that_is_not_contiguous(name, form, no_copy):
    """DALI refuses it."""
    values = NOT_CONTIGUOUS[name]

    def scenario(lib):
        lists = form in ("list", "samples")
        value = list(values) if lists else values
        if form == "fed":
            pipe = lib.pipe(lambda: lib.fn.external_source(name="x", no_copy=no_copy))
            pipe.feed_input("x", value)
        else:
            pipe = lib.pipe(
                lambda: lib.fn.external_source(
                    source=(lambda info: value[info.idx_in_batch])
                    if form == "samples"
                    else lambda: value,
                    batch=form != "samples",
                    no_copy=no_copy,
                )
            )
        out = pipe.run()[0]
        return [np.array(out.at(k)) for k in range(2)]

    assert_differs(scenario, RuntimeError, list(np.ascontiguousarray(values)))


def first(make, count=None, **keywords):
    """A scenario: the samples of the first output of the first batch."""

    def scenario(lib):
        def define():
            nodes = lib.fn.external_source(source=lambda: make(lib), **keywords)
            return tuple(nodes) if isinstance(nodes, list) else nodes

        out = lib.pipe(define).run()[0]
        return [out.layout(), *(np.asarray(out.at(k)).tolist() for k in range(len(out)))]

    return scenario


# Scenario, what DALI does, what Headrace does.
DIFFERENT = {
    "empty_batch": (first(lambda lib: []), [""], ValueError),
    "empty_array": (first(lambda lib: np.zeros((0, 3))), [""], ValueError),
    "complex": (
        first(lambda lib: np.array([[1 + 2j], [3]], np.complex64)),
        # Half of the bytes, taken for numbers of half the width.
        ["", [1.0], [2.0]],
        TypeError,
    ),
    "other_byte_order": (
        first(lambda lib: np.array([[1], [2]], ">u2")),
        ["", [256], [512]],
        ["", [1], [2]],
    ),
    "structured": (first(lambda lib: np.zeros((2, 1), [("a", int)])), ValueError, TypeError),
    "dates": (first(lambda lib: np.array(["2020"] * 2, "M8[D]")), ValueError, TypeError),
    "lists_of_numbers": (
        first(lambda lib: [[1, 2], [3.5]]),
        RuntimeError,
        TypeError,
    ),
    "numbers": (first(lambda lib: [1, 2]), RuntimeError, ["", 1, 2]),
    "only_array": (first(lambda lib: OnlyArray()), RuntimeError, ["", [1], [1]]),
    "only_dlpack": (first(lambda lib: OnlyDLPack(array(1))), RuntimeError, ["", [1], [1]]),
    "bytes": (first(lambda lib: [b"ab", b"c"]), RuntimeError, ["", [97, 98], [99]]),
    "tensor_with_the_batch_in_its_layout": (
        first(lambda lib: lib.TensorCPU(array(1), layout="NA")),
        ["", [1], [1]],
        ["A", [1], [1]],
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_deliberate_differences(name):
    assert_differs(*DIFFERENT[name])


def test_repeating_the_last_batch():
    """In DALI this needs a GPU."""

    def scenario(lib):
        pipe = lib.pipe(lambda: lib.fn.external_source(name="x", repeat_last=True))
        pipe.feed_input("x", array(1))
        first = [np.asarray(pipe.run()[0].at(0)).tolist() for _ in range(3)]
        pipe.feed_input("x", array(2))
        return first, [np.asarray(pipe.run()[0].at(0)).tolist() for _ in range(4)][-1]

    assert_differs(scenario, RuntimeError, ([[1]] * 3, [2]))


def test_repeating_without_any_batch():
    def scenario(lib):
        return len(lib.pipe(lambda: lib.fn.external_source(repeat_last=True)).run()[0])

    assert_differs(scenario, 0, IndexError)
