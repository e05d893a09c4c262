"""Wrong data, wrong arguments, errors in a user's own code: what is said, and what works then."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import numpy as np
import pytest

from headrace import Pipeline, errors, fn, ops, types
from headrace.operators import Arg, FloatArg, Input, StringArg, operator
from headrace.plugin.pytorch import DALIGenericIterator
from tests.support.images import class_folders, picture

HERE = str(Path(__file__))
IMAGES = [picture(20, 30, seed=k) for k in range(4)]


def source(data=None, layout="HWC", **options):
    batch = IMAGES if data is None else data
    return fn.external_source(source=lambda: batch, layout=layout, **options)


def per_sample(values, dtype=np.float32):
    batch = [np.array(v, dtype) for v in values]
    return fn.external_source(source=lambda: batch)


def pipeline(graph, batch_size=4, **options):
    pipe = Pipeline(batch_size, 2, None, seed=1, **options)
    with pipe:
        result = graph()
        pipe.set_outputs(*(result if isinstance(result, tuple) else (result,)))
    return pipe


# What the graph is, the builtin class of the error, what it says, and the operator it names.
RUN_TIME = {
    "wrong type": (
        lambda: fn.decoders.image(fn.cast(source(), dtype=types.FLOAT)),
        TypeError,
        ["type FLOAT", "UINT8", "`fn.cast`"],
        "fn.decoders.image",
    ),
    "decoded twice": (
        lambda: fn.decoders.image(source()),
        ValueError,
        ["flat arrays of bytes", "3-dimensional"],
        "fn.decoders.image",
    ),
    "wrong layout": (
        lambda: fn.flip(source(layout="XYZ")),
        ValueError,
        ['layout "XYZ"', '"HWC"', "`fn.transpose`", "`fn.reshape"],
        "fn.flip",
    ),
    "layout of another rank": (
        lambda: source(layout="HW"),
        ValueError,
        ["2 dimensions", "got 3"],
        None,
    ),
    "no size": (lambda: fn.resize(source()), RuntimeError, ["`size`", "got none"], "fn.resize"),
    "size without end": (
        lambda: fn.resize(source(), resize_x=float("inf")),
        ValueError,
        ["finite", "inf"],
        "fn.resize",
    ),
    "more than there is memory for": (
        lambda: fn.resize(source(), size=[10**9, 10**9]),
        MemoryError,
        ["1000000000, 1000000000, 3"],
        "fn.resize",
    ),
    "negative size": (
        lambda: fn.rotate(source(), angle=10.0, size=[-4, 5]),
        ValueError,
        ["`size` must be positive", "-4"],
        "fn.rotate",
    ),
    "negative size of a random crop": (
        lambda: fn.random_resized_crop(source(), size=[-4, 5]),
        ValueError,
        ["`size`", "positive", "-4"],
        "fn.random_resized_crop",
    ),
    "negative window": (
        lambda: fn.slice(source(), start=[3], shape=[-2], axes=[0]),
        ValueError,
        ["`shape` must not be negative", "-2"],
        "fn.slice",
    ),
    "crop larger than the image": (
        lambda: fn.crop(source(), crop=(33, 4)),
        IndexError,
        ["(33, 4, 3)", "(20, 30, 3)", "out_of_bounds_policy"],
        "fn.crop",
    ),
    "crop and normalise larger than the image": (
        lambda: fn.crop_mirror_normalize(source(), crop=(4, 31)),
        IndexError,
        ["(4, 31, 3)", "(20, 30, 3)"],
        "fn.crop_mirror_normalize",
    ),
    "position beyond the end": (
        lambda: fn.crop(source(), crop=(3, 4), crop_pos_x=1.5),
        ValueError,
        ["`crop_pos_x`=1.5", "out of range [0, 1]"],
        "fn.crop",
    ),
    "means of other channels": (
        lambda: fn.crop_mirror_normalize(source(), mean=[1.0, 2.0]),
        ValueError,
        ["`mean` has 2 values", "3 channels"],
        "fn.crop_mirror_normalize",
    ),
    "arguments for fewer samples": (
        lambda: fn.resize(source(), resize_x=per_sample([3, 4, 5])),
        ValueError,
        ["batch of 3", "one of 4"],
        None,
    ),
    "arguments of another length": (
        lambda: fn.resize(source(), size=per_sample([[3, 4, 5]] * 4)),
        ValueError,
        ["`size`", "2 axes", "got 3"],
        "fn.resize",
    ),
    "vectors for a scalar": (
        lambda: fn.flip(source(), horizontal=per_sample([[1, 0]] * 4, np.int32)),
        ValueError,
        ["`horizontal`", "scalar", "(2,)"],
        "fn.flip",
    ),
    "shapes that do not fit": (
        lambda: source() + source([np.zeros((3, 2), np.uint8)] * 4, ""),
        ValueError,
        ["(20, 30, 3)", "(3, 2)"],
        "arithmetic",
    ),
    "index beyond the end": (lambda: source()[20], IndexError, ["Index 20", "length 20"], "[...]"),
    "axes moved twice": (
        lambda: fn.transpose(source(), perm=[0, 0, 1]),
        ValueError,
        ["`perm`", "[0, 0, 1]"],
        "fn.transpose",
    ),
    "elements left over": (
        lambda: fn.reshape(source(), shape=[7, -1]),
        ValueError,
        ["(20, 30, 3)", "1800 elements"],
        "fn.reshape",
    ),
    "samples of different ranks": (
        lambda: source([np.zeros(3), np.zeros((3, 3))], ""),
        ValueError,
        ["Sample 1 has 2 dimensions, sample 0 has 1"],
        None,
    ),
    "samples of different types": (
        lambda: source([np.zeros(3), np.zeros(3, int)], ""),
        TypeError,
        ["Sample 1", "int64", "float64"],
        None,
    ),
    "too many samples": (
        lambda: source([np.zeros(3)] * 5, ""),
        ValueError,
        ["batch_size <= 4", "5"],
        None,
    ),
    "no numbers": (lambda: source(["cat", "dog"], ""), TypeError, ["str"], None),
}


def check_line(text: str, graph) -> None:
    """The error names the line of this file that created the operator."""
    first = inspect.getsourcelines(graph)[1]
    lines = [f"{HERE}:{line} " for line in range(first, first + 3)]
    lines.append(f"{HERE}:{inspect.getsourcelines(source)[1] + 2} ")
    assert any(line in text for line in lines), text


@pytest.mark.parametrize("case", RUN_TIME)
def test_errors_while_running(case):
    graph, builtin, parts, operator_name = RUN_TIME[case]
    pipe = pipeline(graph)
    for _ in range(2):  # it goes on, and says so again
        with pytest.raises(builtin) as caught:
            pipe.run()
        error = caught.value
        assert isinstance(error, errors.HeadraceError)
        text = "\n".join([str(error), *getattr(error, "__notes__", [])])
        for part in parts:
            assert part in text
        if operator_name is not None:
            assert f"in operator `{operator_name}`" in text
            check_line(text, graph)
        else:
            assert "external source" in text
            check_line(text, graph)


DEFINITION = {
    "unknown argument": (
        lambda: fn.resize(source(), resizex=3),
        KeyError,
        ['"resizex"', "fn.resize", "resize_x"],
    ),
    "argument of another type": (
        lambda: fn.resize(source(), resize_x="a"),
        TypeError,
        ["`resize_x`", "`fn.resize`", "a number", "'a'"],
    ),
    "list for a number": (
        lambda: fn.resize(source(), resize_x=[3, 4]),
        TypeError,
        ["`resize_x`", "[3, 4]"],
    ),
    "no input": (lambda: fn.flip(), ValueError, ["`fn.flip`", "1 input", "received 0"]),
    "two inputs": (lambda: fn.flip(source(), source()), ValueError, ["`fn.flip`", "received 2"]),
    "text for data": (lambda: fn.flip("image"), TypeError, ["Input 0", "`fn.flip`", "str"]),
    "a condition": (lambda: fn.flip(source()) if source() else 0, TypeError, ["conditional"]),
    "no device": (
        lambda: ops.Resize(device="tpu", size=[3, 3])(source()),
        ValueError,
        ["`fn.resize`", '"tpu"', '"cpu", "gpu" or "mixed"'],
    ),
    "a device it is not for": (
        lambda: fn.peek_image_shape(source(), device="gpu"),
        ValueError,
        ["`fn.peek_image_shape`", 'no "gpu" variant', "cpu"],
    ),
}


@pytest.mark.parametrize("case", DEFINITION)
def test_errors_in_the_definition(case):
    graph, builtin, parts = DEFINITION[case]
    with pytest.raises(builtin) as caught:
        pipeline(graph)
    assert isinstance(caught.value, errors.HeadraceError)
    text = str(caught.value)
    for part in parts:
        assert part in text
    check_line(text, graph)
    pipeline(lambda: fn.flip(source())).run()  # nothing of the failed definition is left


def test_only_the_iteration_with_the_bad_sample_fails():
    batches = [[picture(20 - 5 * (k == 1 and i == 2), 30) for i in range(4)] for k in range(3)]
    pipe = pipeline(lambda: fn.crop(fn.external_source(source=batches), crop=(16, 16)))
    assert len(pipe.run()[0]) == 4
    with pytest.raises(IndexError, match=r"\(16, 16, 3\).*\(15, 30, 3\)") as caught:
        pipe.run()
    assert "at sample 2 of the batch" in str(caught.value)
    assert len(pipe.run()[0]) == 4
    with pytest.raises(StopIteration):
        pipe.run()


@operator(
    "testing.e2e.fail_above",
    inputs=Input("image"),
    args=[Arg("limit", FloatArg, 1000.0, "Mean above which it fails.", per_sample=True)],
    hidden=True,
)
def fail_above(xp, image, limit):
    """Fail on bright images."""
    if image.mean() > limit:
        exploding = {"threshold": 1}
        return exploding["limit"]
    return image


class CustomError(Exception):
    """With a constructor of its own."""

    def __init__(self, code, *, why):
        super().__init__(code)
        self.code, self.why = code, why

    def __str__(self):
        return f"code {self.code}: {self.why}"


RAISED = {
    "ZeroDivisionError": lambda: 1 / 0,
    "KeyError": lambda: {}["missing key"],
    "FileNotFoundError": lambda: Path("/nowhere/to/be/found").read_bytes(),
    "UnicodeDecodeError": lambda: b"\xff".decode(),
    "StopIteration": lambda: next(iter([])),
    "SystemExit": lambda: sys.exit("enough"),
    "KeyboardInterrupt": lambda: (_ for _ in ()).throw(KeyboardInterrupt),
    "CustomError": lambda: (_ for _ in ()).throw(CustomError(3, why="tired")),
}


@operator(
    "testing.e2e.raise_at_seven",
    inputs=Input(),
    args=[Arg("kind", StringArg, None, "What is raised: a key of `RAISED`.")],
    hidden=True,
)
def raise_at_seven(xp, number, kind):
    """Raise what is asked for."""
    if number == 7:
        RAISED[kind]()
    return number


@pytest.mark.parametrize("kind", RAISED)
def test_an_exception_in_a_user_operator(kind):
    numbers = iter(np.arange(20).reshape(5, 4, 1))
    pipe = pipeline(
        lambda: fn.testing.e2e.raise_at_seven(
            fn.external_source(source=lambda: next(numbers)), kind=kind
        )
    )
    assert pipe.run()[0].as_array().ravel().tolist() == [0, 1, 2, 3]
    with pytest.raises(errors.OperatorError) as caught:
        pipe.run()
    error = caught.value
    assert not isinstance(error, (StopIteration, SystemExit, KeyboardInterrupt))  # ends nothing
    text = str(error)
    assert "in operator `fn.testing.e2e.raise_at_seven`, at sample 3 of the batch" in text
    assert HERE in text
    assert type(error.__cause__).__name__ == kind
    said = {
        "KeyError": "missing key",
        "CustomError": "code 3: tired",
        "SystemExit": "SystemExit: enough",
        "FileNotFoundError": "/nowhere/to/be/found",
        "UnicodeDecodeError": "0xff",
        "ZeroDivisionError": "division by zero",
    }
    assert said.get(kind, kind) in text
    if kind in ("KeyError", "FileNotFoundError", "UnicodeDecodeError", "ZeroDivisionError"):
        assert isinstance(error, type(error.__cause__))
    assert pipe.run()[0].as_array().ravel().tolist() == [8, 9, 10, 11]


@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_user_operators_take_part_in_skipping(policy, tmp_path):
    class_folders(tmp_path, 12, height=16, width=16)
    brightest = []
    for limit in (1000.0, None):
        pipe = Pipeline(4, 2, None, on_bad_sample=policy)
        with pipe:
            jpegs, labels = fn.readers.file(file_root=str(tmp_path), name="reader")
            images = fn.resize(fn.decoders.image(jpegs), size=[8, 8])
            if limit is None:
                limit = float(np.sort(brightest)[-3])
            images = fn.testing.e2e.fail_above(images, limit=limit)
            pipe.set_outputs(images, labels)
        for _ in range(3):
            brightest += [image.mean() for image in np.array(pipe.run()[0].as_tensor())]
    assert max(brightest[12:]) <= limit < max(brightest[:12])
    reports = {report.source: report for report in pipe.bad_samples if report.iteration < 3}
    assert len(reports) == 2
    for name, report in reports.items():
        assert name.endswith(".jpg")
        assert report.operator == "fn.testing.e2e.fail_above"
        assert "limit" in report.reason


def callback_cases():
    def no_argument():
        if len(calls) == 2:
            calls.append("failed")
            raise LookupError("the data base is away")
        calls.append("fine")
        return [np.array([len(calls)])] * 4

    def by_sample(info):
        if info.iteration == 2 and info.idx_in_batch == 3 and len(calls) < 1:
            calls.append("failed")
            raise LookupError("the data base is away")
        return np.array([info.iteration])

    class Batches:
        def __iter__(self):
            return self

        def __next__(self):
            return no_argument()

    calls: list[str] = []
    return {
        "function": {"source": no_argument},
        "function of the sample": {"source": by_sample, "batch": False},
        "iterator": {"source": Batches()},
    }


@pytest.mark.parametrize("case", callback_cases())
def test_an_exception_in_a_source(case):
    """It is raised when the batch is due, with its own class; then the source goes on."""
    arguments = callback_cases()[case]
    pipe = pipeline(lambda: fn.external_source(**arguments), prefetch_queue_depth=2)
    values, failures = [], []
    for _ in range(6):
        try:
            values.append(pipe.run()[0].at(0).item())
        except LookupError as error:
            failures.append(error)
    (failure,) = failures
    assert str(failure) == "the data base is away"
    (note,) = failure.__notes__
    assert "external source" in note
    assert HERE in note
    assert values == sorted(values)
    assert len(values) == 5


def test_an_exception_in_iter_setup():
    class Fed(Pipeline):
        calls = 0

        def define_graph(self):
            self.node = fn.external_source()
            return self.node

        def iter_setup(self):
            Fed.calls += 1
            if Fed.calls == 3:
                raise LookupError("nothing to feed")
            self.feed_input(self.node, [np.array([Fed.calls])] * 2)

    pipe = Fed(2, 1, None)
    got = []
    for _ in range(5):
        try:
            got.append(pipe.run()[0].at(0).item())
        except LookupError:
            got.append("failed")
    assert got.count("failed") == 1
    assert [k for k in got if k != "failed"] == [1, 2, 4, 5]


def test_an_error_reaches_the_loop_of_an_iterator():
    batches = [np.full((4, 1), k) for k in range(4)]
    pipe = pipeline(
        lambda: fn.testing.e2e.fail_above(
            fn.external_source(source=batches, cycle="raise"), limit=per_sample([1.5] * 4)
        )
    )
    loader = DALIGenericIterator(pipe, ["x"])
    for _ in range(3):
        steps = iter(loader)
        assert [next(steps)[0]["x"][0].item() for _ in range(2)] == [0, 1]
        with pytest.raises(KeyError, match="limit"):
            next(steps)
    with pytest.raises(KeyError):  # without starting over, the loop may go on behind the error
        next(loader)
    with pytest.raises(StopIteration):
        next(loader)
