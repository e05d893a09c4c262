"""Readers of columns beside the formats' own libraries: types, values, orders, bad samples."""

from __future__ import annotations

import functools
import pickle
from typing import Any

import numpy as np
import pytest

import headrace.experimental.dynamic as ndd
from headrace import errors, fn, types
from headrace.pipeline import Pipeline
from tests.support.images import encoded

pa = pytest.importorskip("pyarrow")
h5py = pytest.importorskip("h5py")
datasets = pytest.importorskip("datasets")
pq = pytest.importorskip("pyarrow.parquet")

ROWS = 23


@functools.cache
def table() -> Any:
    """Every kind of column, in few rows."""
    n = range(ROWS)
    boxes = pa.list_(pa.struct([("bbox", pa.list_(pa.float32(), 4)), ("id", pa.int64())]))
    columns = {
        "index": pa.array(n, pa.int64()),
        "half": pa.array(np.arange(ROWS, dtype=np.float16)),
        "flag": pa.array([k % 3 == 0 for k in n]),
        "day": pa.array(n, pa.date32()),
        "time": pa.array(n, pa.timestamp("us")),
        "class": pa.array([k % 4 for k in n]).dictionary_encode(),
        "bytes": pa.array([bytes([k]) * (k % 5) for k in n], pa.large_binary()),
        "view": pa.array([bytes([k]) * (k % 20) for k in n]).cast(pa.binary_view()),
        "hash": pa.array([bytes([k] * 3) for k in n], pa.binary(3)),
        "list": pa.array([list(range(k % 4)) for k in n], pa.list_(pa.int16())),
        "grid": pa.array([[[k, 1, 2]] * (k % 3) for k in n], pa.list_(pa.large_list(pa.int32()))),
        "fixed": pa.array([[[k, 1], [2, 3]] for k in n], pa.list_(pa.list_(pa.uint8(), 2), 2)),
        "objects": pa.array(
            [[{"bbox": [k, 1, 2, j], "id": j} for j in range(k % 3)] for k in n], boxes
        ),
        "a.b": pa.array(n, pa.uint32()),
        "image": pa.array([{"bytes": bytes([k] * 4), "path": f"{k}"} for k in n]),
    }
    return pa.table(columns)


COLUMNS = {
    "index": (types.INT64, 0),
    "half": (types.FLOAT16, 0),
    "flag": (types.BOOL, 0),
    "day": (types.INT32, 0),
    "time": (types.INT64, 0),
    "class": (types.INT64, 0),
    "bytes": (types.UINT8, 1),
    "view": (types.UINT8, 1),
    "hash": (types.UINT8, 1),
    "list": (types.INT16, 1),
    "grid": (types.INT32, 2),
    "fixed": (types.UINT8, 2),
    "objects.bbox": (types.FLOAT, 2),
    "objects.id": (types.INT64, 1),
    "a.b": (types.UINT32, 0),
    "image": (types.UINT8, 1),
    "image.bytes": (types.UINT8, 1),
}


def plain(name: str, row: int) -> Any:
    """The value of a row as pyarrow has it."""
    if name == "day" or name == "time":
        return row
    value = table()[name.partition(".")[0] if name != "a.b" else name][row].as_py()
    if name.startswith("objects."):
        value = [each[name.partition(".")[2]] for each in value]
    if name.startswith("image"):
        value = value["bytes"]
    return list(value) if isinstance(value, bytes) else value


def write_parquet(folder: Any, data: Any = None, **settings: Any) -> Any:
    data = table() if data is None else data
    path = folder / "rows.parquet"
    pq.write_table(data, path, **{"row_group_size": 5, **settings})
    return {"paths": str(path)}


def write_arrow(folder: Any, data: Any = None) -> Any:
    data = table() if data is None else data
    path = folder / "rows.arrow"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, data.schema) as writer:
        writer.write_table(data, max_chunksize=4)
    return {"source": str(path)}


def pipeline(
    name: str, where: Any, columns: Any, batch_size: int = 5, **arguments: Any
) -> Pipeline:
    engine = {"num_threads": 2, "device_id": None, "seed": 7, **arguments.pop("engine", {})}
    pipe = Pipeline(batch_size, **engine)
    with pipe:
        found: Any = getattr(fn.readers, name)(**where, columns=columns, name="reader", **arguments)
        pipe.set_outputs(*(found if isinstance(found, list) else [found]))
    return pipe


def drawn(pipe: Pipeline, batches: int, output: int = 0) -> list[Any]:
    found = []
    for _ in range(batches):
        batch = pipe.run()[output]
        found += [np.asarray(batch[k]).tolist() for k in range(len(batch))]
    return found


@pytest.mark.parametrize("codec", ["none", "snappy", "zstd"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_types_and_values_of_parquet(tmp_path, codec, version) -> None:
    where = write_parquet(tmp_path, compression=codec, data_page_version=version, data_page_size=40)
    check_all(pipeline("parquet", where, list(COLUMNS)))


def check_all(pipe: Pipeline) -> None:
    row = 0
    for _ in range(ROWS // 5):
        outputs = pipe.run()
        for (name, (dtype, ndim)), batch in zip(COLUMNS.items(), outputs, strict=True):
            assert (batch.dtype, batch.ndim()) == (dtype, ndim), name
            for k in range(5):
                value = np.asarray(batch[k])
                assert value.flags.writeable, name
                expected = np.array(plain(name, row + k), value.dtype)
                np.testing.assert_array_equal(value, expected.reshape(value.shape), err_msg=name)
                assert value.size == expected.size
        assert f"row {row}" in outputs[0].source_info()[0]
        row += 5


def test_types_and_values_of_arrow(tmp_path) -> None:
    check_all(pipeline("arrow", write_arrow(tmp_path), list(COLUMNS)))
    check_all(pipeline("arrow", {"source": table()}, list(COLUMNS)))
    # Slices begin in the middle of buffers.
    whole = pa.concat_tables([table().slice(2), table()])
    check_all(pipeline("arrow", {"source": whole.slice(ROWS - 2)}, list(COLUMNS)))


def test_types_and_values_of_lance(tmp_path) -> None:
    lance = pytest.importorskip("lance")
    unknown = ("view", "half")  # types that Lance does not store as they are
    stored = table().drop_columns([*unknown, "a.b"])
    lance.write_dataset(stored.slice(0, 9), tmp_path / "rows")
    lance.write_dataset(stored.slice(9), tmp_path / "rows", mode="append")
    names = [name for name in COLUMNS if name not in (*unknown, "a.b")]
    pipe = pipeline("lance", {"path": str(tmp_path / "rows")}, names, ROWS, random_shuffle=True)
    outputs = dict(zip(names, pipe.run(), strict=True))
    order = outputs["index"].as_array().tolist()
    assert sorted(order) == list(range(ROWS)) != order
    for name, batch in outputs.items():
        assert (batch.dtype, batch.ndim()) == COLUMNS[name], name
        for k, row in enumerate(order):
            assert np.asarray(batch[k]).reshape(-1).tolist() == np.ravel(plain(name, row)).tolist()
    where = {"path": str(tmp_path / "rows")}
    pipe = pipeline("lance", where, ["index"], ROWS, bucket_by="list", buckets=[1, 2, 3])
    meta = pipe.reader_meta("reader")
    found = [pipe.run()[0].as_array() % 4 for _ in range(meta["batches"])]
    assert [len(set(batch.tolist())) for batch in found] == [1] * 4
    pipe = pipeline("lance", {**where, "version": 1}, ["index"])
    assert pipe.reader_meta("reader")["epoch_size"] == 9


def test_data_sets_of_hugging_face(tmp_path) -> None:
    """What `select` and `shuffle` made is read, images and arrays as they are stored."""
    features = datasets.Features(
        {
            "image": datasets.Image(),
            # as `datasets.Audio` stores it, whose library need not be there
            "audio": {"bytes": datasets.Value("binary"), "path": datasets.Value("string")},
            "grid": datasets.Array2D((2, 3), "float32"),
            "label": datasets.ClassLabel(names=["a", "b"]),
        }
    )
    (tmp_path / "5.jpg").write_bytes(b"\5" * 6)
    rows = {
        "image": [
            {"bytes": None, "path": str(tmp_path / "5.jpg")}
            if k == 5
            else {"bytes": bytes([k] * (k + 1)), "path": None}
            for k in range(9)
        ],
        "audio": [{"bytes": bytes([k]), "path": None} for k in range(9)],
        "grid": [np.full((2, 3), k, np.float32) for k in range(9)],
        "label": [k % 2 for k in range(9)],
    }
    made = datasets.Dataset.from_dict(rows, features=features)
    made.save_to_disk(tmp_path / "saved")
    for dataset in (made, datasets.load_from_disk(tmp_path / "saved")):
        dataset = dataset.shuffle(seed=1).select(range(1, 9))
        order = [int(np.asarray(row)[0][0]) for row in dataset["grid"]]
        pipe = pipeline("hf_dataset", {"dataset": dataset}, ["image", "audio", "grid", "label"], 8)
        image, audio, grid, label = pipe.run()
        assert [bytes(np.asarray(image[k])) for k in range(8)] == [
            bytes([k] * (k + 1)) for k in order
        ]
        assert [np.asarray(audio[k])[0] for k in range(8)] == order
        assert (grid.shape(), grid.dtype) == ([(2, 3)] * 8, types.FLOAT)
        assert label.as_array().tolist() == [k % 2 for k in order]
        assert pickle.loads(pickle.dumps(dataset))["label"] == label.as_array().tolist()


@pytest.mark.parametrize("storage", ["plain", "chunked", "partly chunked"])
def test_types_and_values_of_hdf5(tmp_path, storage) -> None:
    values = {
        "x/pixels": np.arange(ROWS * 6, dtype=np.uint8).reshape(ROWS, 2, 3),
        "y": np.arange(ROWS, dtype=">i4"),
        "flag": np.arange(ROWS) % 3 == 0,
        "f": np.linspace(0, 1, ROWS),
    }
    paths = []
    for number, part in enumerate(np.split(np.arange(ROWS), [10, 11])):
        paths.append(str(tmp_path / f"{number}.h5"))
        with h5py.File(paths[-1], "w") as file:
            for k, (name, whole) in enumerate(values.items()):
                chunked = storage == "chunked" or (storage == "partly chunked" and k % 2)
                how = (
                    {
                        "chunks": (3, *[1] * (whole.ndim - 1)),
                        "compression": "gzip",
                        "maxshape": (None, *whole.shape[1:]),
                    }
                    if chunked
                    else {}
                )
                file.create_dataset(name, data=whole[part], **how)
    pipe = pipeline("hdf5", {"paths": paths}, list(values), ROWS)
    outputs = pipe.run()
    for whole, batch in zip(values.values(), outputs, strict=True):
        np.testing.assert_array_equal(batch.as_array(), whole)
        assert np.asarray(batch[0]).dtype == whole.dtype.newbyteorder("=")
    assert outputs[0].source_info()[10:12] == [f"{paths[1]}, row 0", f"{paths[2]}, row 0"]


def test_hdf5_rows_of_any_length(tmp_path) -> None:
    jpegs = [encoded(20 + k, 30, seed=k) for k in range(5)]
    with h5py.File(tmp_path / "v.h5", "w") as file:
        made = file.create_dataset("jpeg", (5,), h5py.vlen_dtype(np.uint8))
        for k, jpeg in enumerate(jpegs):
            made[k] = jpeg
    batch = pipeline("hdf5", {"paths": tmp_path}, ["jpeg"]).run()[0]
    assert [bytes(batch.at(k)) for k in range(5)] == [bytes(jpeg) for jpeg in jpegs]


SHUFFLES: list[dict[str, Any]] = [
    {},
    {"random_shuffle": True, "initial_fill": 6},
    {"shuffle_after_epoch": True, "initial_fill": 6},
]


@pytest.mark.parametrize("shuffle", SHUFFLES, ids=["in order", "window", "all"])
def test_each_row_once_in_groups(tmp_path, shuffle) -> None:
    """All shards together have each row once an epoch, of few row groups at a time."""
    where = write_parquet(tmp_path)
    epochs = []
    for shard in range(3):
        pipe = pipeline("parquet", where, ["index"], 1, shard_id=shard, num_shards=3, **shuffle)
        sizes = [
            ((shard + e) % 3 if "shuffle_after_epoch" not in shuffle else shard) for e in range(2)
        ]
        epochs.append([drawn(pipe, (s + 1) * ROWS // 3 - s * ROWS // 3) for s in sizes])
    for epoch in range(2):
        found = [row for shard in epochs for row in shard[epoch]]
        assert sorted(found) == list(range(ROWS))
        assert (found == list(range(ROWS))) == (not shuffle and epoch == 0) or not shuffle
    if "shuffle_after_epoch" in shuffle:
        assert epochs[0][0] != epochs[0][1]
        whole = drawn(pipeline("parquet", where, ["index"], 1, **shuffle), ROWS)
        groups = [row // 5 for row in whole]
        for end in range(0, ROWS, 10):  # a block is of two groups here
            assert len(set(groups[end : end + 10])) <= 3


def test_rows_that_lack_a_value(tmp_path) -> None:
    """A null is a bad sample, with file, row group, row, column; paths of images are read."""
    data = pa.table(
        {
            "a": pa.array([0, None, 2, 3]),
            "list": pa.array([[1], [2], [None], [4]]),
            "grid": pa.array([[[1], [2]], [[1]], [[1]], [[1], [2, 3]]]),
            "image": [
                {"bytes": None, "path": "here.jpg"},
                {"bytes": b"x", "path": None},
                {"bytes": b"y", "path": None},
                None,
            ],
        }
    )
    (tmp_path / "here.jpg").write_bytes(b"abc")
    where = write_parquet(tmp_path, data, row_group_size=2)
    for column, bad, what in [
        ("a", 1, "no value here"),
        ("list", 2, "nothing"),
        ("grid", 3, "different lengths"),
        ("image", 3, "no value here"),
    ]:
        with pytest.raises(errors.BadSampleError) as caught:
            pipeline("parquet", where, [column], 4).run()
        for part in (what, f"'{column}'", f"row group {bad // 2}, row {bad}", "rows.parquet"):
            assert part in str(caught.value)
        pipe = pipeline("parquet", where, [column], 3, engine={"on_bad_sample": "skip"})
        (batch,) = pipe.run()
        assert sorted(int(s.rpartition(" ")[2]) for s in batch.source_info()) == [
            k for k in range(4) if k != bad
        ]
        if column == "image":
            assert bytes(batch.at(0)) == b"abc"
    assert ndd_rows(where, "list", 2) == [[1], [2]]


def ndd_rows(where: Any, column: str, count: int) -> list[Any]:
    reader = ndd.readers.Parquet(**where, columns=[column])
    (batch,) = next(iter(reader.next_epoch(batch_size=count)))
    return [np.asarray(row).tolist() for row in batch]


def test_damaged_row_group(tmp_path) -> None:
    """Rows of a group that cannot be read are bad samples; the others are there."""
    data = pa.table({"a": [bytes(range(200))] * 10})
    where = write_parquet(
        tmp_path, data, row_group_size=5, compression="zstd", use_dictionary=False
    )
    path = tmp_path / "rows.parquet"
    first = pq.ParquetFile(path).metadata.row_group(0).column(0)
    content = bytearray(path.read_bytes())
    begin = first.data_page_offset
    content[begin : begin + first.total_compressed_size] = b"\xff" * first.total_compressed_size
    path.write_bytes(content)
    with pytest.raises(errors.BadSampleError, match=r"Row group 0 of .*rows\.parquet"):
        pipeline("parquet", where, ["a"]).run()
    pipe = pipeline("parquet", where, ["a"], engine={"on_bad_sample": "skip"})
    assert [s.rpartition(" ")[2] for s in pipe.run()[0].source_info()] == list("56789")


def test_addresses_and_folders(tmp_path) -> None:
    fsspec = pytest.importorskip("fsspec")
    write_parquet(tmp_path)
    content = (tmp_path / "rows.parquet").read_bytes()
    with fsspec.open("memory://columns/a/0.parquet", "wb") as file:
        file.write(content)
    (tmp_path / "b").mkdir()
    (tmp_path / "b/1.parquet").write_bytes(content)
    for paths, count in [
        ("memory://columns/a", ROWS),
        ("memory://columns/*/{0..0}.parquet", ROWS),
        (str(tmp_path), 2 * ROWS),
        ([str(tmp_path / "rows.parquet"), "memory://columns/a/0.parquet"], 2 * ROWS),
    ]:
        pipe = pipeline("parquet", {"paths": paths}, ["index"])
        assert pipe.reader_meta("reader")["epoch_size"] == count
        assert drawn(pipe, 2) == list(range(10))


def test_the_hub(tmp_path, monkeypatch) -> None:
    """Addresses of Hugging Face's hub go to the file system that fsspec has for them."""
    fsspec = pytest.importorskip("fsspec")
    registry = pytest.importorskip("fsspec.registry")
    folders = pytest.importorskip("fsspec.implementations.dirfs")

    class Hub(folders.DirFileSystem):
        protocol, cachable = "hf", False

        def __init__(self, **options: Any) -> None:
            super().__init__(path=str(tmp_path), fs=fsspec.filesystem("file"), **options)

    monkeypatch.setitem(registry._registry, "hf", Hub)
    root, folder = "hf://datasets/me/pets@main/data", tmp_path / "datasets/me/pets@main/data"
    (folder / "images").mkdir(parents=True)
    files = [encoded(20, 30, seed) for seed in range(4)]
    for part in range(2):
        own = [
            {"bytes": None if k % 2 else bytes(files[k]), "path": f"images/{k}.jpg"}
            for k in (2 * part, 2 * part + 1)
        ]
        rows = pa.table({"image": own, "ids": [[k] * (k + 1) for k in range(2)]})
        pq.write_table(rows, folder / f"train-{part:05}-of-00002.parquet")
        (folder / f"images/{2 * part + 1}.jpg").write_bytes(bytes(files[2 * part + 1]))
    for paths in (f"{root}/train-*.parquet", root):
        pipe = pipeline("parquet", {"paths": paths}, ["image", "ids"], 4)
        image, ids = pipe.run()
        assert [np.asarray(i).tolist() for i in image] == [f.tolist() for f in files]
        assert [len(np.asarray(i)) for i in ids] == [1, 2, 1, 2]
        last = f"{root}/train-00001-of-00002.parquet, row group 0, row 1"
        assert image.source_info()[3] == last
    names = [f"{root}/images/{k}.jpg" for k in (1, 3)]
    reader = ndd.readers.File(files=names, bucket_by="pixels")
    ((found, _),) = reader.next_epoch(batch_size=2)
    assert [np.asarray(f).tolist() for f in found.tensors] == [files[k].tolist() for k in (1, 3)]
    wrong = pipeline("parquet", {"paths": "hf://datasets/me/none/x.parquet"}, ["ids"])
    with pytest.raises(errors.HeadraceError, match=r"hf://datasets/me/none"):
        wrong.run()


WRONG: list[tuple[str, Any, Any, type[Exception], str]] = [
    ("parquet", "parquet", [], errors.ArgumentValueError, "an empty list"),
    ("parquet", "parquet", ["indx"], errors.ArgumentValueError, "[Dd]id you mean"),
    ("parquet", "parquet", ["objects.box"], errors.ArgumentValueError, "'bbox'"),
    ("parquet", "parquet", ["list.x"], errors.ArgumentValueError, "no such field"),
    ("parquet", {"paths": "nowhere.parquet"}, ["index"], errors.ArgumentValueError, "nowhere"),
    ("arrow", {"source": 5}, ["index"], errors.ArgumentTypeError, "int"),
    ("arrow", "parquet", ["index"], errors.ArgumentValueError, "stream of record batches"),
    ("hf_dataset", {"dataset": {"train": 1}}, ["index"], errors.ArgumentTypeError, "'train'"),
    ("hdf5", "hdf5", ["x"], errors.ArgumentValueError, "'a'"),
    ("hdf5", "hdf5", ["complex"], errors.DataTypeError, "no tensors"),
    ("hdf5", "hdf5", ["a", "b"], errors.ArgumentValueError, "different numbers of rows"),
    ("hdf5", {"paths": __file__}, ["a"], errors.ArgumentValueError, "as a file of HDF5"),
]


@pytest.mark.parametrize(("name", "where", "columns", "kind", "words"), WRONG)
def test_wrong_arguments(tmp_path, name, where, columns, kind, words) -> None:
    if where == "parquet":
        where = write_parquet(tmp_path)
        where = {"source": where["paths"]} if name == "arrow" else where
    elif where == "hdf5":
        with h5py.File(tmp_path / "x.h5", "w") as file:
            file["a"], file["b"], file["complex"] = np.arange(3), np.arange(4), [1j, 2j]
        where = {"paths": str(tmp_path / "x.h5")}
    with pytest.raises(kind, match=words):
        pipeline(name, where, columns).build()


def test_files_that_differ(tmp_path) -> None:
    for k, kind in enumerate((pa.int32(), pa.int64())):
        pq.write_table(pa.table({"a": pa.array([1], kind)}), tmp_path / f"{k}.parquet")
    with pytest.raises(
        errors.ArgumentValueError, match=r"int32 in .*0\.parquet.* int64 in .*1\.parquet"
    ):
        pipeline("parquet", {"paths": tmp_path}, ["a"]).build()


def test_few_groups_are_kept(tmp_path) -> None:
    """With memory for one group, each row is there all the same."""
    where = write_parquet(tmp_path)
    pipe = pipeline("parquet", where, ["index"], 23, shuffle_after_epoch=True, cache_bytes=1)
    assert sorted(drawn(pipe, 1)) == list(range(ROWS))


def test_worker_processes(tmp_path) -> None:
    """Groups are read by this process, and samples are worked on by others."""
    images = [{"bytes": encoded(20 + k, 30, seed=k).tobytes(), "path": None} for k in range(10)]
    where = write_parquet(tmp_path, pa.table({"image": images}), row_group_size=3)
    found = []
    for workers in ("threads", "processes"):
        pipe = Pipeline(5, 2, None, workers=workers, seed=3)
        with pipe:
            (data,) = [fn.readers.parquet(**where, columns=["image"], shuffle_after_epoch=True)]
            pipe.set_outputs(fn.decoders.image(data) + fn.random.uniform(range=(0, 1)))
        found.append(drawn(pipe, 4))
        assert pipe.counters()["workers"] == workers
    assert found[0] == found[1]
