"""`readers.mix` and `readers.pack` of readers on the GPU, beside the same on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from astropy.io import fits

import headrace.experimental.dynamic as ndd
from headrace import Pipeline, errors, fn, ops
from tests.support.videos import write_video

SIZES = (5, 9, 4)
BAD = 6
"""Number of the bad file of the second folder."""


@pytest.fixture(scope="module")
def arrays(tmp_path_factory) -> list[list[str]]:
    """Files of each reader."""
    folder = tmp_path_factory.mktemp("arrays")
    found = []
    for reader, size in enumerate(SIZES):
        found.append([str(folder / f"{reader}-{k}.npy") for k in range(size)])
        for k, path in enumerate(found[-1]):
            np.save(path, np.full((k + 1, reader + 2), 10 * reader + k, np.float32))
    with open(found[1][BAD], "wb") as file:
        file.write(b"no array")
    return found


def of_arrays(arrays: Any, device: str | None, **order: Any) -> list[Any]:
    return [fn.readers.numpy(files=files, device=device, seed=2, **order) for files in arrays]


def pipeline(graph: Callable[[], Any], **more: Any) -> Pipeline:
    options = {"batch_size": 3, "num_threads": 2, "device_id": 0, "seed": 7} | more
    pipe = Pipeline(enable_checkpointing=True, on_bad_sample="skip", **options)
    with pipe:
        found = graph()
        pipe.set_outputs(*(found if isinstance(found, (list, tuple)) else [found]))
    return pipe


def read(pipe: Pipeline, batches: int, device: str = "cpu") -> list[list[Any]]:
    """The outputs of each iteration, all of which are on a device, with where they are from."""
    found = []
    for _ in range(batches):
        outputs = pipe.run()
        kinds = {type(out).__name__ for out in outputs}
        assert kinds == {f"TensorList{device.upper()}"}
        rows = [[np.array(s.as_cpu()) for s in out] for out in outputs]
        found.append([*rows, outputs[0].source_info()])
    return found


def assert_same(want: Any, got: Any) -> None:
    np.testing.assert_equal(got, want)
    assert want


@pytest.mark.sweep(pairs=True)
@pytest.mark.parametrize("weights", [None, [1, 2, 0.5]])
@pytest.mark.parametrize("stop", ["first", "all"])
@pytest.mark.parametrize("shuffled", [{}, {"shuffle_after_epoch": True}])
def test_values_and_order_are_those_of_the_cpu(arrays, weights, stop, shuffled) -> None:
    """With a bad file, which is replaced, over the ends of epochs."""
    pipes = [
        pipeline(
            lambda device=device: fn.readers.mix(
                of_arrays(arrays, device, **shuffled), weights=weights, stop=stop, name="mix"
            )
        )
        for device in ("cpu", "gpu")
    ]
    want, got = (read(p, 12, d) for p, d in zip(pipes, ("cpu", "gpu"), strict=True))
    assert_same(want, got)
    assert pipes[0].reader_meta("mix") == pipes[1].reader_meta("mix")
    assert all(pipe.counters()["skipped_samples"] for pipe in pipes)


def test_a_checkpoint_goes_on_on_either_device(arrays) -> None:
    def make(device: str, **more: Any) -> Pipeline:
        return pipeline(
            lambda: fn.readers.mix(of_arrays(arrays, device), weights=[1, 2, 1]), **more
        )

    want = read(make("cpu"), 9)
    for first, second in (("gpu", "gpu"), ("cpu", "gpu"), ("gpu", "cpu")):
        stopped = make(first)
        read(stopped, 4, first)
        assert_same(want[4:], read(make(second, checkpoint=stopped.checkpoint()), 5, second))


def test_another_number_of_shards(arrays) -> None:
    def make(device: str, shard: int, count: int, **more: Any) -> Pipeline:
        own = {"shard_id": shard, "num_shards": count, "shuffle_after_epoch": True}
        return pipeline(lambda: fn.readers.mix(of_arrays(arrays[::2], device, **own)), **more)

    found = []
    for device in ("cpu", "gpu"):
        stopped = make(device, 0, 1, batch_size=2)
        begun = read(stopped, 2, device)
        saved = stopped.checkpoint()
        rest = [read(make(device, k, 2, checkpoint=saved), 2, device) for k in range(2)]
        found.append([begun, *rest])
    assert_same(*found)


def test_classes_and_serialized_pipelines(arrays) -> None:
    graph = lambda device: fn.readers.mix(of_arrays(arrays, device), weights=[2, 1, 1])  # noqa: E731
    want = read(pipeline(lambda: graph("cpu")), 4)

    def by_classes() -> Any:
        readers = [ops.readers.Numpy(files=files, device="gpu", seed=2)() for files in arrays]
        return ops.readers.Mix(readers, weights=[2, 1, 1])()

    pipe = pipeline(by_classes)
    options = {"enable_checkpointing": True, "on_bad_sample": "skip"}
    again = Pipeline.deserialize(pipe.serialize(), **options)
    for each in (pipe, again):
        assert_same(want, read(each, 4, "gpu"))


def test_fits(tmp_path) -> None:
    names = [[str(tmp_path / f"{reader}{k}.fits") for k in range(3)] for reader in range(2)]
    for reader, own in enumerate(names):
        for k, name in enumerate(own):
            image = np.full((k + 2, 3), 10 * reader + k, np.int16)
            fits.HDUList([fits.PrimaryHDU(), fits.ImageHDU(image)]).writeto(name)

    def graph(device: str) -> Any:
        readers = [fn.experimental.readers.fits(files=own, device=device) for own in names]
        return fn.readers.mix(readers, weights=[2, 1])

    want, got = (read(pipeline(lambda d=d: graph(d)), 4, d) for d in ("cpu", "gpu"))
    assert_same(want, got)


def test_videos_and_their_labels(tmp_path) -> None:
    pytest.importorskip("av")
    names = [write_video(tmp_path / f"{k}.mp4", frames=9, seed=k) for k in range(3)]

    def graph(device: str) -> Any:
        readers = [
            fn.readers.video(filenames=own, labels=labels, sequence_length=3, device=device)
            for own, labels in ((names[:1], [4]), (names[1:], [5, 6]))
        ]
        mixed = fn.readers.mix(readers, weights=[1, 2])
        return [*mixed[1:], fn.resize(mixed[0], size=[8, 8], interp_type=1)]

    want, got = (read(pipeline(lambda d=d: graph(d)), 4, d) for d in ("cpu", "gpu"))
    for a, b in zip(want, got, strict=True):
        np.testing.assert_equal(a[:2], b[:2])
        for x, y in zip(a[2], b[2], strict=True):
            assert np.abs(x.astype(int) - y).max() <= 1


def test_the_device_of_a_mix(arrays) -> None:
    """Its readers' unless it is given; what is on several has to be told."""
    want = read(pipeline(lambda: fn.readers.mix(of_arrays(arrays, "cpu"))), 3)

    def several() -> list[Any]:
        return [*of_arrays(arrays[:1], "gpu"), *of_arrays(arrays[1:], "cpu")]

    for device in ("cpu", "gpu"):
        found = read(pipeline(lambda d=device: fn.readers.mix(several(), device=d)), 3, device)
        assert_same(want, found)
    words = r"reader 0 on gpu, reader 1 on cpu.*`device=` of `fn.readers.mix`.*cpu or gpu"
    with pytest.raises(errors.MisusedArgumentError, match=words):
        pipeline(lambda: fn.readers.mix(several()))
    readers = [ndd.readers.Numpy(files=f, device=d) for f, d in zip(arrays, ("cpu", "gpu", "gpu"))]  # noqa: B905
    words = r"reader 0 on cpu, reader 1 on gpu:0.*`device=` of `ndd.readers.Mix`"
    with pytest.raises(errors.MisusedArgumentError, match=words):
        ndd.readers.Mix(readers=readers)


@pytest.mark.parametrize("said", [{}, {"device": "gpu"}])
def test_dynamic_mode(arrays, said) -> None:
    def mixed(where: str, **more: Any) -> Any:
        good = arrays[::2]
        readers = [ndd.readers.Numpy(files=files, device=where) for files in good]
        return ndd.readers.Mix(readers=readers, weights=[1, 2], enable_checkpointing=True, **more)

    def batches(reader: Any) -> list[Any]:
        found = list(reader.next_epoch(batch_size=2))
        assert {str(out.device) for outputs in found for out in outputs} == {"gpu:0"}
        return [[[np.array(s.cpu()) for s in out] for out in outputs] for outputs in found]

    plain = mixed("cpu").next_epoch(batch_size=2)
    want = [[[np.array(s) for s in out] for out in outputs] for outputs in plain]
    where = "cpu" if said else "gpu"
    assert_same(want, batches(mixed(where, **said)))
    stopped = mixed(where, **said)
    next(stopped.next_epoch(batch_size=2))
    resumed = mixed(where, **said)
    resumed.set_state(stopped.get_state())
    assert_same(want[1:], batches(resumed)[: len(want) - 1])


def test_packed_rows(tmp_path) -> None:
    names = [str(tmp_path / f"{k}.npy") for k in range(6)]
    for k, name in enumerate(names):
        np.save(name, np.arange(k + 1, dtype=np.int32) + 10 * k)

    def graph(device: str) -> Any:
        return fn.readers.pack(fn.readers.numpy(files=names, device=device), length=8)

    want, got = (read(pipeline(lambda d=d: graph(d)), 3, d) for d in ("cpu", "gpu"))
    assert_same(want, got)
    rows = ndd.readers.Pack(reader=ndd.readers.Numpy(files=names, device="gpu"), length=8)
    batch = next(rows.next_epoch(batch_size=3))
    assert_same([[np.array(s.cpu()) for s in out] for out in batch], want[0][:3])
