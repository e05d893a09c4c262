import gc
import inspect
import os
import subprocess
import sys
import threading
import weakref

import cv2
import numpy as np
import pytest

import headrace.experimental.dynamic as ndd
from headrace import types
from headrace.errors import NotYetSupportedError
from headrace.operators import Index, Reader, Spec
from headrace.operators import reader as declare_reader
from headrace.operators.support import registry

COUNT = 10


@pytest.fixture
def root(tmp_path):
    for k in range(COUNT):
        folder = tmp_path / f"class{k // 5}"
        folder.mkdir(exist_ok=True)
        (folder / f"{k}.jpg").write_bytes(bytes([k]) * (k + 1))
    return str(tmp_path)


def made(root, **arguments):
    return ndd.readers.File(file_root=root, **arguments)


def first(batch):
    return [int(np.asarray(sample)[0]) for sample in batch]


def batches(reader, size=4):
    return [first(data) for data, _ in reader.next_epoch(batch_size=size)]


def samples(reader):
    return [int(np.asarray(data)[0]) for data, _ in reader.next_epoch()]


def test_batches_go_on_in_the_next_epoch(root):
    reader = made(root)
    assert batches(reader) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1]]
    assert batches(reader) == [[2, 3, 4, 5], [6, 7, 8, 9], [0, 1, 2, 3]]


def test_what_is_in_a_batch(root):
    data, labels = next(made(root).next_epoch(batch_size=3))
    assert isinstance(data, ndd.Batch)
    assert data.shape == [(1,), (2,), (3,)]
    assert (data.dtype, labels.dtype) == (ndd.uint8, ndd.int32)
    assert labels.shape == [(1,)] * 3
    assert data.layout is None
    for k, sample in enumerate(data):
        np.testing.assert_array_equal(sample, [k] * (k + 1))


def test_samples(root):
    reader = made(root)
    data, label = next(reader.next_epoch())
    assert isinstance(data, ndd.Tensor)
    assert (data.shape, label.shape) == ((1,), (1,))
    assert samples(made(root)) == list(range(COUNT))


def test_the_largest_size_is_the_usual_one(root):
    reader = made(root, max_batch_size=4)
    assert first(next(reader.next_epoch())[0]) == [0, 1, 2, 3]


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("shuffled", [False, True])
def test_shards_are_disjoint_and_complete(root, padded, shuffled):
    readers = [
        made(
            root,
            num_shards=3,
            shard_id=k,
            pad_last_batch=padded,
            random_shuffle=shuffled,
            initial_fill=4,
            seed=3,
        )
        for k in range(3)
    ]
    for _ in range(4):
        seen = [samples(reader) for reader in readers]
        if padded:
            assert [len(s) for s in seen] == [4] * 3
            seen = [list(dict.fromkeys(s)) for s in seen]
        assert sorted(k for s in seen for k in s) == list(range(COUNT))


def test_shards_stay_where_everything_is_shuffled(root):
    readers = [made(root, num_shards=3, shard_id=k, shuffle_after_epoch=True) for k in range(3)]
    for _ in range(3):
        seen = [samples(reader) for reader in readers]
        assert [len(s) for s in seen] == [3, 3, 4]
        assert sorted(k for s in seen for k in s) == list(range(COUNT))


def test_an_epoch_left_early(root):
    reader = made(root)
    epoch = reader.next_epoch(batch_size=4)
    next(epoch)
    next(epoch)
    assert batches(reader) == [[8, 9, 0, 1], [2, 3, 4, 5], [6, 7, 8, 9]]
    assert [first(data) for data, _ in epoch] == [[0, 1, 2, 3]]
    assert list(epoch) == []


def test_two_loops_share_a_position(root):
    reader = made(root)
    one, other = reader.next_epoch(batch_size=4), reader.next_epoch(batch_size=4)
    assert [first(next(e)[0])[0] for e in (one, other, one)] == [0, 4, 8]
    one.close()
    assert list(one) == []


def test_one_seed_one_order(root):
    orders = [
        [samples(reader), samples(reader)]
        for reader in [made(root, random_shuffle=True, seed=5) for _ in range(2)]
    ]
    assert orders[0] == orders[1]
    assert orders[0][0] != orders[0][1]
    assert samples(made(root, random_shuffle=True)) == samples(made(root, random_shuffle=True))


def test_calls(root):
    reader = made(root, max_batch_size=4)
    assert int(np.asarray(reader()[0])[0]) == 0
    assert first(reader(batch_size=4)[0]) == [1, 2, 3, 4]
    assert first(reader(batch_size=2)[0]) == [5, 6]
    with pytest.raises(ValueError, match="max_batch_size"):
        reader(batch_size=5)


def test_sizes_do_not_change(root):
    reader = made(root, max_batch_size=4)
    with pytest.raises(ValueError, match="max_batch_size"):
        next(reader.next_epoch(batch_size=5))
    assert len(batches(reader, 3)) == 4
    with pytest.raises(ValueError, match="batch_size"):
        next(reader.next_epoch(batch_size=4))
    assert len(batches(reader, 3)) == 4


def test_uses_do_not_mix(root):
    reader = made(root)
    batches(reader)
    with pytest.raises(RuntimeError, match="samples"):
        next(reader.next_epoch())
    with pytest.raises(RuntimeError, match="calls"):
        reader()


@pytest.mark.parametrize("size", [0, -1])
def test_sizes_are_positive(root, size):
    with pytest.raises(ValueError):
        next(made(root).next_epoch(batch_size=size))
    with pytest.raises(ValueError):
        made(root, max_batch_size=size)


@pytest.mark.parametrize("size", ["a", 2.0, True])
def test_sizes_are_integers(root, size):
    with pytest.raises(TypeError):
        next(made(root).next_epoch(batch_size=size))


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"shard_id": -1}, ValueError),
        ({"shard_id": 2, "num_shards": 2}, ValueError),
        ({"num_shards": 0}, ValueError),
        ({"bogus": 1}, TypeError),
        ({"preserve": True}, TypeError),
        ({"num_inputs": 1}, ValueError),
        ({"device": "mixed"}, ValueError),
    ],
)
def test_arguments_that_are_wrong_from_the_start(root, arguments, error):
    with pytest.raises(error):
        made(root, **arguments)


def test_what_cannot_be_found_shows_at_the_first_step(tmp_path):
    reader = made(str(tmp_path / "nope"), name="train")
    with pytest.raises(ValueError, match="nope") as caught:
        next(reader.next_epoch(batch_size=1))
    assert "train" in str(caught.value)


def test_metadata(root):
    reader = made(root, num_shards=3, shard_id=1, pad_last_batch=True)
    assert reader.get_metadata() == {
        "epoch_size": 10,
        "epoch_size_padded": 12,
        "number_of_shards": 3,
        "shard_id": 1,
        "pad_last_batch": 1,
        "stick_to_shard": 0,
    }
    reader.get_metadata(4)
    with pytest.raises(ValueError):
        next(reader.next_epoch(batch_size=3))
    assert batches(reader, 4) == [[3, 4, 5, 5]]


def broken(root):
    files = [f"{root}/class0/0.jpg", f"{root}/nope.jpg", f"{root}/class0/1.jpg"]
    return ndd.readers.File(files=files)


@pytest.mark.parametrize("mode", [ndd.EvalMode.eager, ndd.EvalMode.deferred])
def test_the_loop_goes_on_after_a_bad_file(root, mode):
    good, bad = [], []
    with mode:
        for data, _ in broken(root).next_epoch(batch_size=1):  # this line
            try:
                good += first(data)
            except RuntimeError as error:
                bad.append(error)
    assert good == [0, 1]
    (error,) = bad
    assert "nope.jpg" in str(error)
    assert "sample 0" in str(error)
    assert "test_readers.py" in str(error)
    lines, begin = inspect.getsourcelines(test_the_loop_goes_on_after_a_bad_file)
    (line,) = [begin + k for k, text in enumerate(lines) if "# this line\n" in text]
    assert f"called at {__file__}:{line} in" in str(error)


def test_a_failed_batch_fails_every_time_and_whatever_reads_it(root):
    epoch = broken(root).next_epoch(batch_size=1)
    next(epoch)
    data, labels = next(epoch)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="nope"):
            data.evaluate()
        with pytest.raises(RuntimeError, match="nope"):
            _ = labels.shape
    with pytest.raises(RuntimeError, match="nope"):
        (data + 1).evaluate()
    assert first(next(epoch)[0] + 1) == [2]


@pytest.mark.parametrize("mode", [ndd.EvalMode.sync_cpu, ndd.EvalMode.sync_full])
def test_errors_in_step(root, mode):
    with mode:
        epoch = broken(root).next_epoch(batch_size=1)
        next(epoch)
        with pytest.raises(RuntimeError, match="nope"):
            next(epoch)
        assert first(next(epoch)[0]) == [1]


def test_states(root):
    reader = made(root, enable_checkpointing=True)
    with pytest.raises(RuntimeError, match="first step"):
        reader.get_state()
    epoch = reader.next_epoch(batch_size=3)
    next(epoch)
    state = reader.get_state()
    rest = [first(data) for data, _ in epoch] + batches(reader, 3)
    other = made(root)
    other.set_state(str(state))
    assert other.get_state() == state
    resumed = batches(other, 3) + batches(other, 3)
    assert resumed[: len(rest)] == rest
    with pytest.raises(RuntimeError, match="begun"):
        other.set_state(state)
    with pytest.raises(ValueError, match=r"`num_shards`=1, and .* has 2"):
        made(root, num_shards=2, shard_id=1).set_state(state)


@pytest.mark.sweep
@pytest.mark.parametrize("taken", [0, 1, 3, 5, 17])
@pytest.mark.parametrize(
    "arguments",
    [
        {"random_shuffle": True, "seed": 3, "initial_fill": 3},
        {"shuffle_after_epoch": True},
        {"num_shards": 3, "shard_id": 1},
        {"num_shards": 3, "shard_id": 1, "pad_last_batch": True},
    ],
)
def test_resumed_is_uninterrupted(root, arguments, taken):
    reader = made(root, enable_checkpointing=True, **arguments)
    steps = (step for _ in range(9) for step in reader.next_epoch())
    next(steps)
    for _ in range(taken):
        next(steps)
    state = reader.get_state()
    rest = [int(np.asarray(data)[0]) for data, _ in steps]
    other = made(root, **arguments)
    other.set_state(state)
    again = [int(np.asarray(data)[0]) for _ in range(9) for data, _ in other.next_epoch()]
    assert again[: len(rest)] == rest[: len(again)]


@pytest.mark.parametrize("state", ["", "zz", "eyJ9", "e30=", b"\xff", "MQ=="])
def test_what_is_no_state(root, state):
    with pytest.raises(ValueError):
        made(root).set_state(state)


def test_states_are_text(root):
    with pytest.raises(TypeError):
        made(root).set_state(5)
    with pytest.raises(RuntimeError, match="enable_checkpointing"):
        made(root).get_state()


def test_checkpoints_hold_readers(root):
    reader, rng = made(root, enable_checkpointing=True), ndd.random.RNG(1)
    saved = ndd.checkpoint.Checkpoint()
    saved.register(reader, "reader")
    saved.register(rng, "rng")
    next(reader.next_epoch(batch_size=3))
    rng()
    saved.collect()
    text = saved.serialize()
    loaded = ndd.checkpoint.Checkpoint()
    loaded.deserialize(text)
    other, other_rng = made(root), ndd.random.RNG()
    loaded.register(other, "reader")
    loaded.register(other_rng, "rng")
    assert batches(other, 3)[0] == [3, 4, 5]
    assert other_rng.get_state() == rng.get_state()
    with pytest.raises(TypeError):
        ndd.checkpoint.Checkpoint().set_state("a", "b", 5)
    assert ndd.checkpoint.current() is ndd.EvalContext.current().checkpoint


def test_threads_read_shards_of_their_own(root):
    seen = {}

    def loop(shard):
        reader = made(root, num_shards=2, shard_id=shard)
        with ndd.EvalContext(num_threads=1):
            seen[shard] = [batches(reader, 2) for _ in range(20)]

    threads = [threading.Thread(target=loop, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for shard in range(2):
        flat = [k for epoch in seen[shard] for batch in epoch for k in batch]
        start = 5 * shard
        assert flat == [(start + k) % COUNT for k in range(len(flat))]


def test_a_reader_that_is_dropped_leaves_no_thread(root):
    reader = made(root)
    epoch = reader.next_epoch(batch_size=4)
    batch = next(epoch)
    thread = next(t for t in threading.enumerate() if t.name == "headrace-reader")
    gone = weakref.ref(reader)
    del reader, epoch
    gc.collect()
    assert gone() is None
    thread.join(60)
    assert not thread.is_alive()
    assert first(batch[0]) == [0, 1, 2, 3]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_reader_goes_on_in_a_forked_process(root):
    reader = made(root)
    epoch = reader.next_epoch(batch_size=4)
    next(epoch)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if [first(data)[0] for data, _ in epoch] == [4, 8] else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [first(data)[0] for data, _ in epoch] == [4, 8]


def test_operators_that_are_to_come():
    with pytest.raises(NotYetSupportedError):
        _ = ndd.experimental.inputs.Video
    assert "Video" in dir(ndd.readers)
    with pytest.raises(AttributeError):
        _ = ndd.readers.Nonsense
    assert "File" in dir(ndd.readers)
    assert "file_root" in str(ndd.readers.File.__signature__)


@pytest.mark.parametrize("capture", [False, True])
def test_the_program_may_end_at_any_time(root, capture):
    program = f"""
import headrace.experimental.dynamic as ndd
reader = ndd.readers.File(file_root={root!r})
loop = reader.next_epoch(batch_size=2, capture={capture})
kept = [(data, data + 1) for (data, _), _ in zip(loop, range(4))]
print("done")
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


class Squares(Index):
    """Squares of numbers that are stored nowhere."""

    def __init__(self, factor):
        super().__init__(10, [Spec(types.INT64, 0)], details=[np.arange(10)])
        self.factor = factor

    def source(self, entry):
        return f"number {entry}"

    def fetch(self, entry):
        if entry == 7:
            raise ValueError("no seven")
        return (np.array(self.factor * entry**2),)


def test_readers_of_the_users_own():
    def declare(factor):
        @declare_reader("readers.squares", num_outputs=2)
        class SquaresReader(Reader):
            """Squares of numbers, and twice the numbers."""

            def list_entries(self):
                return Squares(factor)

            def cpu(self, c, square, number):
                return square, 2 * number

    assert not hasattr(ndd.readers, "Squares")
    try:
        for factor in (1, 2):
            declare(factor)
            reader = ndd.readers.Squares()
            (good, doubled), (bad, _) = reader.next_epoch(batch_size=5)
            assert [int(np.asarray(sample)) for sample in good] == [factor * k**2 for k in range(5)]
            assert [int(np.asarray(sample)) for sample in doubled] == [0, 2, 4, 6, 8]
            with pytest.raises(ValueError, match="number 7"):
                bad.evaluate()
    finally:
        registry._schemas.pop("readers.squares", None)
        vars(ndd.readers).pop("Squares", None)


def test_imread_reads_files_and_addresses(tmp_path):
    pixels = np.random.default_rng(3).integers(0, 256, (5, 7, 3), np.uint8)
    encoded = cv2.imencode(".png", pixels[..., ::-1])[1].tobytes()
    system = pytest.importorskip("fsspec").filesystem("memory")
    (tmp_path / "a.png").write_bytes(encoded)
    system.pipe({"/images/a.png": encoded})
    try:
        both = ndd.imread([str(tmp_path / "a.png"), "memory://images/a.png"])
        for image in both:
            np.testing.assert_array_equal(np.asarray(image), pixels)
        with pytest.raises(RuntimeError, match="memory://images/missing"):
            ndd.imread("memory://images/missing").evaluate()
    finally:
        system.rm("/images", recursive=True)
