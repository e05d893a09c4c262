"""PyTorch iterators against DALI's: every batch of several epochs, sizes, what they hand out."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import logging
import warnings

import numpy as np
import nvidia.dali.plugin.pytorch as dali_torch
import pytest
import torch

import headrace.plugin.pytorch as headrace_torch
from tests.parity.support import LIBRARIES
from tests.parity.words import check_words

PLUGINS = {"dali": dali_torch, "headrace": headrace_torch}
POLICIES = ("FILL", "DROP", "PARTIAL")
SIZES = [
    (7, 1, 2), (7, 1, 3), (7, 1, 5), (7, 1, 8), (7, 1, 15), (7, 2, 2), (7, 2, 3), (10, 3, 3),
    (9, 2, 4), (10, 3, 2), (11, 4, 1), (11, 4, 2), (8, 2, 2), (5, 2, 4), (5, 4, 3), (13, 3, 5),
]  # fmt: skip


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "x"
    path.write_bytes(b"x")
    return str(path)


@contextlib.contextmanager
def quiet():
    """DALI warns of `size`, and logs that it ignores a reset."""
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


def label_pipeline(library, path, size, shards, shard, batch_size, **arguments):
    lib = LIBRARIES[library]
    pipe = lib.pipeline.Pipeline(
        batch_size=batch_size, num_threads=1, device_id=None, prefetch_queue_depth=1
    )
    with pipe:
        _, label = lib.fn.readers.file(
            files=[path] * size, name="reader", num_shards=shards, shard_id=shard, **arguments
        )
        pipe.set_outputs(label)
    return pipe


def run_epochs(library, pipelines, policy, epochs, **arguments):
    """For each epoch: size, and the labels of all steps. Or the class of what was raised."""
    plugin = PLUGINS[library]
    try:
        with quiet():
            it = plugin.DALIGenericIterator(
                pipelines, ["x"], last_batch_policy=plugin.LastBatchPolicy[policy], **arguments
            )
    except RuntimeError:
        return "RuntimeError"
    found = []
    for _ in range(epochs):
        size = it.size
        length = len(it) if size > 0 else None  # DALI says 0 where it does not know
        steps = []
        while (step := next(it, None)) is not None:
            steps.append([d["x"].ravel().tolist() for d in step])
        if library == "headrace" and size > 0:
            assert length == len(steps)
        found.append((size, steps))
        it.reset()
    return found


def leaves_padding_behind(size, shards, batch_size, policy, pad):
    """Whether DALI opens the next epoch with a batch of nothing but padding."""
    smallest, largest = size // shards, -(-size // shards)
    left_out = smallest % batch_size == 0 and largest > smallest
    return policy == "DROP" and pad and left_out


@pytest.mark.sweep
@pytest.mark.parametrize(("size", "shards", "batch_size"), SIZES)
@pytest.mark.parametrize("mode", ["reader", "alone", "size"])
def test_epochs(path, size, shards, batch_size, mode):
    check_epochs(path, size, shards, batch_size, mode)


@pytest.mark.sweep
@pytest.mark.parametrize("size", range(1, 10))
@pytest.mark.parametrize("shards", range(1, 5))
@pytest.mark.parametrize("batch_size", range(1, 5))
@pytest.mark.parametrize("mode", ["reader", "alone", "size"])
def test_all_small_sizes(path, size, shards, batch_size, mode):
    """Shards, padded or not, rotated or not, in several epochs: whatever can be small."""
    check_epochs(path, size, min(shards, size), batch_size, mode)


def check_epochs(path, size, shards, batch_size, mode):
    for policy, pad, stick in itertools.product(POLICIES, (False, True), (False, True)):
        if mode != "size" and leaves_padding_behind(size, shards, batch_size, policy, pad):
            continue
        if mode == "size":
            arguments = {"size": size, "last_batch_padded": pad}
            if stick and policy != "DROP":  # in the old words
                arguments["fill_last_batch"] = policy == "FILL"
        else:
            arguments = {"reader_name": "reader"}
        results = {}
        for library in LIBRARIES:
            pipelines = [
                label_pipeline(
                    library, path, size, shards, k, batch_size,
                    pad_last_batch=pad, stick_to_shard=stick,
                )
                for k in ([shards - 1] if mode == "alone" else range(shards))
            ]  # fmt: skip
            results[library] = run_epochs(library, pipelines, policy, 4, **arguments)
        assert results["headrace"] == results["dali"], (policy, pad, stick)


@pytest.mark.sweep
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("pad", [False, True])
@pytest.mark.parametrize(
    "shuffling", [{"random_shuffle": True, "seed": 5}, {"shuffle_after_epoch": True}]
)
def test_shuffled_epochs(path, policy, pad, shuffling):
    results = {}
    for library in LIBRARIES:
        pipelines = [
            label_pipeline(library, path, 23, 2, k, 4, pad_last_batch=pad, **shuffling)
            for k in range(2)
        ]
        results[library] = run_epochs(library, pipelines, policy, 5, reader_name="reader")
    assert results["headrace"] == results["dali"]


def one_step(library, samples, make):
    lib = LIBRARIES[library]
    pipe = lib.pipeline.Pipeline(batch_size=len(samples), num_threads=1, device_id=None)
    with pipe:
        pipe.set_outputs(lib.fn.external_source(source=lambda: samples, batch=True))
    with quiet():  # PyTorch warns of how DALI makes sparse tensors
        return next(make(PLUGINS[library], pipe))[0]["x"]


@pytest.mark.sweep
@pytest.mark.parametrize(
    "dtype",
    [np.uint8, np.int8, np.int16, np.int32, np.int64, np.float16, np.float32, np.float64, np.bool_],
)
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (4, 5, 3)])
def test_dense_tensors(dtype, shape):
    samples = [(np.arange(np.prod(shape)) + k).astype(dtype).reshape(shape) for k in range(3)]
    want, got = (
        one_step(library, samples, lambda plugin, pipe: plugin.DALIGenericIterator(pipe, ["x"]))
        for library in LIBRARIES
    )
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    assert torch.equal(got, want)


@pytest.mark.parametrize("tag", ["sparse_list", "sparse_coo"])
def test_ragged_tensors(tag):
    samples = [np.array(v, np.float32) for v in ([1, 2, 0], [4], [5, 6])]
    want, got = (
        one_step(
            library,
            samples,
            lambda plugin, pipe: plugin.DALIRaggedIterator(pipe, ["x"], output_types=[tag]),
        )
        for library in LIBRARIES
    )
    if tag == "sparse_list":
        assert [t.tolist() for t in got] == [t.tolist() for t in want]
    else:
        want = want.coalesce()
        assert got.shape == want.shape
        assert torch.equal(got.indices(), want.indices())
        assert torch.equal(got.values(), want.values())


def test_types():
    for dtype, torch_type in dali_torch.to_torch_type.items():
        own = LIBRARIES["headrace"].types.DALIDataType(int(dtype))
        assert headrace_torch.to_torch_type[own] is torch_type


@pytest.mark.parametrize("cycle", ["quiet", "raise"])
def test_epochs_of_an_external_source(cycle):
    def epochs(library):
        lib = LIBRARIES[library]
        batches = [[np.array([2 * k + i], np.int32) for i in range(2)] for k in range(4)]
        pipe = lib.pipeline.Pipeline(batch_size=2, num_threads=1, device_id=None)
        with pipe:
            pipe.set_outputs(lib.fn.external_source(source=batches, batch=True, cycle=cycle))
        arguments = {"size": 6} if cycle == "quiet" else {}
        return run_epochs(library, pipe, "FILL", 4, **arguments)

    assert epochs("headrace") == epochs("dali")


COUNTS = ("_size", "_counter", "_num_gpus", "_last_batch_padded", "_prepare_first_batch")
COUNTS_OF_SHARDS = (*("_size_no_pad", "_shards_num", "_shards_id", "_counter_per_gpu"),)


def counts(it, names):
    return {name: np.asarray(getattr(it, name)).tolist() for name in names}


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("by", "shards"), [("reader", 1), ("reader", 2), ("size", 1), ("size", 2), ("data", 1)]
)
@pytest.mark.parametrize("policy", POLICIES)
def test_counts_that_training_code_reads(path, policy, by, shards):
    def observe(library):
        plugin = PLUGINS[library]
        pipes = [label_pipeline(library, path, 7, shards, k, 2) for k in range(shards)]
        sizes = {"reader": {"reader_name": "reader"}, "size": {"size": 7}, "data": {}}[by]
        names = COUNTS + (COUNTS_OF_SHARDS if by == "reader" else ())
        with quiet():
            it = plugin.DALIGenericIterator(
                pipes,
                ["x"],
                last_batch_policy=plugin.LastBatchPolicy[policy],
                auto_reset=True,
                **sizes,
            )
            first = [d["x"].tolist() for d in it._first_batch]
            found = [first, counts(it, names)]
            if by == "reader":  # later on DALI turns them with some policies
                found.append(it._shard_sizes_per_gpu.tolist())
            for _ in range(1 if by == "data" else 2):
                found += [(it._first_batch, counts(it, names)) for _ in itertools.islice(it, 5)]
                found.append(counts(it, names))
        return found

    assert observe("headrace") == observe("dali")


def mistakes(library, path):
    """What is wrong, with words that the text of both libraries has."""
    torch_plugin, lib = PLUGINS[library], LIBRARIES[library]
    make = torch_plugin.DALIGenericIterator
    pipes = [label_pipeline(library, path, 4, 1, 0, 2) for _ in range(2)]
    batch = lib.tensors.TensorListCPU(np.zeros((2, 3), np.int16))
    single = "negative size is supported only for a single pipeline"
    element = (
        "the element type of dali tensor/tensorlist doesn't match the element type of the target "
        "pytorch tensor:"
    )
    policy = "wrong type for `last_batch_policy`."
    yield lambda: make(pipes, ["x"], size=-1), single
    yield lambda: make(pipes[0], ["x"], size=0), "size cannot be 0"
    yield lambda: make(pipes[0], ["x"], size=4, last_batch_policy="FILL"), policy
    yield lambda: torch_plugin.feed_ndarray(batch, torch.zeros((2, 3))), element
    yield lambda: batch.reinterpret(lib.types.UINT8), "size"


def test_words_of_errors(path):
    for library in LIBRARIES:
        for wrong, words in mistakes(library, path):
            with quiet(), pytest.raises((ValueError, AssertionError, RuntimeError)) as error:
                wrong()
            assert words in str(error.value).lower()


def test_what_does_not_go_together_is_an_assertion_error_in_the_same_words():
    def reading(lib, batch_size=2):
        def define():
            return lib.fn.readers.file(files=[__file__] * 4, labels=[0] * 4, name="reader")[1]

        return lib.pipe(define, batch_size)

    def made(kind="DALIGenericIterator", output_map=("a",), batch_sizes=(2,), **settings):
        def scenario(lib):
            plugin = importlib.import_module(f"{lib.module.__name__}.plugin.pytorch")
            pipes = [reading(lib, size) for size in batch_sizes]
            return getattr(plugin, kind)(pipes, list(output_map), **settings)

        return scenario

    named = {"reader_name": "reader"}
    check_words(
        [
            (made(size=0), "size cannot be 0"),
            (made(size=4, **named), "when reader_name is provided, size should not be set"),
            (
                made(last_batch_padded=True, **named),
                "when reader_name is provided, last_batch_padded should not be set",
            ),
            (made(output_map=["a", "a"], **named), "output_map names should be distinct"),
            (
                made(batch_sizes=(2, 3), **named),
                "all pipelines should have the same batch size set",
            ),
            (made(batch_sizes=(2, 2)), "negative size is supported only for a single pipeline"),
            (
                made("DALIRaggedIterator", output_types=["dens"], **named),
                "only dense_tag, sparse_list_tag and sparse_coo_tag are allowed",
            ),
        ]
    )


@pytest.mark.parametrize("arguments", [{}, {"auto_reset": True}, {"prepare_first_batch": False}])
def test_a_loop_goes_on_behind_next(path, arguments):
    """What `next` has begun, a loop goes on with; and then begins the next epoch."""
    found = {}
    for library, plugin in PLUGINS.items():
        with quiet():
            pipe = label_pipeline(library, path, 5, 1, 0, 1)
            it = plugin.DALIGenericIterator([pipe], ["x"], reader_name="reader", **arguments)
            steps = [next(it)[0]["x"].item() for _ in range(2)]
            loops = [[step[0]["x"].item() for step in it] for _ in range(3)]
            found[library] = [steps, *loops]
    assert found["headrace"] == found["dali"]


WAYS = "run", "schedule_run", "share_outputs", "outputs", "release_outputs"


@pytest.mark.parametrize("way", WAYS)
def test_iterators_and_other_ways_do_not_mix(path, way):
    for library, plugin in PLUGINS.items():
        with quiet():
            pipe = label_pipeline(library, path, 7, 1, 0, 2)
            it = plugin.DALIGenericIterator([pipe], ["x"], reader_name="reader")
            first = next(it)[0]["x"].ravel().tolist()
            with pytest.raises(RuntimeError, match="Mixing"):
                getattr(pipe, way)()
            assert [first, next(it)[0]["x"].ravel().tolist()] == [[0, 1], [2, 3]]
            pipe.enable_api_check(False)
            if way == "schedule_run":
                pipe.schedule_run()
            pipe = label_pipeline(library, path, 7, 1, 0, 2)
            pipe.build()
            with contextlib.suppress(StopIteration):  # nothing was scheduled
                getattr(pipe, way)()
            with pytest.raises(RuntimeError, match="Mixing"):
                plugin.DALIGenericIterator([pipe], ["x"], reader_name="reader")
