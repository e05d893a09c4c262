"""Texts and objects that travel beside tensors: types, operators, outputs, policies, workers."""

from __future__ import annotations

import io
import json
import tarfile
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace.experimental.dynamic as ndd
from headrace import Pipeline, errors, fn, pipeline_def, types

TEXTS = ["a", "Grüße", "", "a\0b", "x" * 300]
OBJECTS: list[Any] = [{"k": [1, 2]}, None, ("a", 1.5), b"bytes", 7]
N = len(TEXTS)


def fed(**arguments: Any) -> Any:
    return fn.external_source(
        source=lambda: (np.arange(N), TEXTS, OBJECTS),
        num_outputs=3,
        dtype=[types.INT64, types.STRING, types.PYTHON_OBJECT],
        **arguments,
    )


def run(define: Any, *batches: Any, **arguments: Any) -> Any:
    pipe = Pipeline(N, 2, None, seed=3, **arguments)
    with pipe:
        outputs = define()
        pipe.set_outputs(*(outputs if isinstance(outputs, (list, tuple)) else [outputs]))
    return pipe.run()


def test_outputs() -> None:
    """A batch gives texts and objects, one by one and together, and is no tensor."""
    _, texts, objects = run(fed)
    assert (texts.dtype, objects.dtype) == (types.STRING, types.PYTHON_OBJECT)
    for batch, expected in ((texts, TEXTS), (objects, OBJECTS)):
        assert batch.tolist() == expected
        assert [batch.at(k) for k in range(N)] == expected
        assert [sample.tolist() for sample in batch] == expected
        assert [np.asarray(sample).item() for sample in batch] == expected
        assert batch[1:3].tolist() == expected[1:3]
        assert batch.as_array().tolist() == expected
        assert repr(expected[0])[1:-1] in str(batch)
        for refused in (batch.as_tensor, lambda b=batch: b.as_reshaped_tensor((9,))):
            with pytest.raises(errors.DataTypeError, match="tolist"):
                refused()
        with pytest.raises(errors.DataTypeError, match="tolist"):
            np.from_dlpack(batch[0])


TEXT_LISTS = st.lists(st.text(max_size=9), min_size=1, max_size=6)


@given(TEXT_LISTS, st.data())
def test_any_text_through_branches_and_permutations(texts, data) -> None:
    holds = [data.draw(st.booleans()) for _ in texts]
    order = data.draw(st.permutations(range(len(texts))))

    @pipeline_def(batch_size=len(texts), num_threads=1, device_id=None, enable_conditionals=True)
    def define() -> Any:
        text = fn.external_source(source=lambda: texts, dtype=types.STRING)
        marked = fn.external_source(source=lambda: [f"{t}!" for t in texts], dtype=types.STRING)
        holds_node = fn.external_source(source=lambda: np.array(holds))
        if holds_node:
            chosen = text
        else:
            chosen = marked
        return chosen, fn.permute_batch(fn.copy(chosen), indices=list(order))

    chosen, moved = define().run()
    expected = [t if h else f"{t}!" for t, h in zip(texts, holds, strict=True)]
    assert chosen.tolist() == expected
    assert moved.tolist() == [expected[k] for k in order]


def archive(path: Any, count: int = 6) -> list[dict[str, Any]]:
    """A WebDataset of texts, classes and JSON; sample 2 has a broken JSON."""
    made = []
    with tarfile.open(path, "w") as tar:
        for k in range(count):
            document = {
                "id": f"s{k}",
                "size": [k, 2 * k],
                "tags": ["x"] * k,
                "nested": {"p": k / 2},
            }
            made.append(document)
            members = {
                "txt": f" caption {k}\n".encode(),
                "cls": str(k).encode(),
                "json": b"{" if k == 2 else json.dumps(document).encode(),
            }
            for extension, content in members.items():
                info = tarfile.TarInfo(f"{k:03}.{extension}")
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return made


def of_archive(path: Any, size: int, **engine: Any) -> Pipeline:
    pipe = Pipeline(size, 2, None, seed=1, **engine)
    with pipe:
        txt, cls, document = fn.readers.webdataset(paths=str(path), ext=["txt", "cls", "json"])
        whole = fn.decoders.json(document, field="nested")
        pipe.set_outputs(
            fn.decoders.text(txt, strip=True),
            fn.decoders.json(cls, dtype=types.INT64),
            fn.decoders.json(document),
            fn.decoders.json(document, field="size", dtype=types.FLOAT, ndim=1),
            fn.decoders.json(document, field="id", dtype=types.STRING),
            fn.decoders.json(whole, field="p", dtype=types.FLOAT),
            fn.decoders.text(fn.get_property(txt, key="source_info")),
        )
    return pipe


@pytest.mark.parametrize("workers", ["threads", "processes"])
@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_members_of_a_web_dataset(tmp_path, workers, policy) -> None:
    """Class "4" is the number 4; side data of a sample stays with it where others are skipped."""
    documents = archive(tmp_path / "a.tar")
    pipe = of_archive(tmp_path / "a.tar", 5, on_bad_sample=policy, workers=workers)
    text, label, document, size, name, nested, source = pipe.run()
    numbers = label.tolist()
    assert 2 not in numbers
    assert len(numbers) == 5
    assert (label.dtype, label.ndim(), size.dtype) == (types.INT64, 0, types.FLOAT)
    assert text.tolist() == [f"caption {k}" for k in numbers]
    assert document.tolist() == [documents[k] for k in numbers]
    assert [size.at(k).tolist() for k in range(5)] == [[k, 2 * k] for k in numbers]
    assert name.tolist() == [f"s{k}" for k in numbers]
    assert nested.as_array().tolist() == [k / 2 for k in numbers]
    assert [f"{k:03}.txt" in where for k, where in zip(numbers, source.tolist(), strict=True)]
    assert pipe.counters()["workers"] == workers


def test_columns_of_text_and_structures(tmp_path) -> None:
    pa = pytest.importorskip("pyarrow")
    h5py = pytest.importorskip("h5py")
    rows: dict[str, Any] = {
        "text": ["a", "Grüße", ""],
        "large": pa.array(["x", "y", "z"], pa.large_string()),
        "category": pa.array(["p", "q", "p"]).dictionary_encode(),
        "tags": [["a", "b"], [], ["c"]],
        "meta": [{"a": 1, "b": [{"c": "d"}]}, {"a": None, "b": []}, None],
    }
    table = pa.table(rows)
    names = [*rows, "meta.b.c"]
    found = run_of(lambda: fn.readers.arrow(source=table.slice(1), columns=names))
    for name, batch in zip(names, found, strict=True):
        expected = table.slice(1)[name.partition(".")[0]].to_pylist()
        if name == "meta.b.c":
            expected = [[], None]
        kind = types.STRING if name in ("text", "large", "category") else types.PYTHON_OBJECT
        assert (batch.tolist(), batch.dtype) == (expected, kind), name
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file["varying"], file["fixed"] = ["a", "Grüße"], np.array([b"ab", b"c"])
    varying, fixed = run_of(
        lambda: fn.readers.hdf5(paths=str(tmp_path / "t.h5"), columns=["varying", "fixed"])
    )
    assert (varying.tolist(), fixed.tolist()) == (["a", "Grüße"], ["ab", "c"])


def run_of(define: Any) -> Any:
    pipe = Pipeline(2, 1, None)
    with pipe:
        pipe.set_outputs(*define())
    return pipe.run()


@pytest.mark.parametrize("parallel", ["threads", "processes"])
def test_parallel_sources(parallel) -> None:
    assert run(lambda: fed(parallel=parallel), py_num_workers=1)[2].tolist() == OBJECTS


def test_samples_and_fed_batches() -> None:
    pipe = Pipeline(2, 1, None)
    with pipe:
        sample = fn.external_source(
            source=lambda i: f"s{i.idx_in_epoch}", batch=False, dtype=types.STRING
        )
        pipe.set_outputs(sample, fn.external_source(name="fed", dtype=types.STRING))
    pipe.feed_input("fed", ["p", "q"])
    texts, given_texts = pipe.run()
    assert (texts.tolist(), given_texts.tolist()) == (["s0", "s1"], ["p", "q"])
    pipe.feed_input("fed", given_texts)
    assert pipe.run()[1].tolist() == ["p", "q"]


def test_dynamic_mode(tmp_path) -> None:
    documents = archive(tmp_path / "a.tar", 2)
    reader = ndd.readers.Webdataset(paths=str(tmp_path / "a.tar"), ext=["txt", "json"])
    (batch,) = reader.next_epoch(batch_size=2)
    texts = ndd.decoders.text(batch[0], strip=True)
    assert [t.item() for t in texts] == ["caption 0", "caption 1"]
    assert [t.item() for t in ndd.decoders.json(batch[1])] == documents
    assert texts.dtype.type_id == types.STRING
    with pytest.raises(errors.DataTypeError, match="side data"):
        ndd.cast(texts, dtype=ndd.int32).evaluate()


def texts() -> Any:
    return fn.external_source(source=lambda: TEXTS, dtype=types.STRING)


def objects() -> Any:
    return fn.external_source(source=lambda: OBJECTS, dtype=types.PYTHON_OBJECT)


@pytest.mark.parametrize(
    ("define", "words"),
    [
        (lambda: fn.cast(texts(), dtype=types.UINT8), "side data of type STRING"),
        (lambda: objects() + 1, "side data of type PYTHON_OBJECT"),
        (lambda: fn.cat(texts(), texts()), "type STRING, which travels"),
        (lambda: fn.python_function(texts(), function=lambda x: x), "travels beside"),
        (lambda: fn.reductions.sum(objects()), "is not computed with"),
        (lambda: fn.external_source(source=lambda: ["a"] * N), r"dtype=types\.STRING"),
        (lambda: fn.external_source(source=lambda: [1] * N, dtype=types.STRING), "A text"),
        (lambda: fn.external_source(source=lambda: "abc", dtype=types.STRING), "list with a value"),
        (
            lambda: fn.external_source(source=lambda: [lambda: 0] * N, dtype=types.PYTHON_OBJECT),
            "cannot be pickled",
        ),
    ],
)
def test_side_data_is_not_computed_with(define, words) -> None:
    with pytest.raises(errors.DataTypeError, match=words):
        run(define)


def fed_bytes(content: bytes) -> Any:
    return fn.external_source(source=lambda: [np.frombuffer(content, np.uint8)] * N)


BAD: list[tuple[bytes, dict[str, Any], str]] = [
    (b"{", {}, "no JSON"),
    (b"\xff", {}, "no text in utf-8"),
    (b"1.5", {"dtype": types.INT32}, "expected is INT32 of 0 axes"),
    (b'"a"', {"dtype": types.FLOAT}, "expected is FLOAT"),
    (b"[1, [2]]", {"dtype": types.FLOAT, "ndim": 1}, "expected is FLOAT of 1 axes"),
    (b"300", {"dtype": types.UINT8}, "expected is UINT8"),
    (b'{"a": 1}', {"field": "b"}, "no field 'b'; it has 'a'"),
    (b'{"a": [1]}', {"field": "a.1"}, "The field 'a' of the json has no '1'"),
    (b"4", {"dtype": types.STRING}, "expected is a text"),
]


@pytest.mark.parametrize(("content", "arguments", "words"), BAD)
def test_bad_json(content, arguments, words) -> None:
    with pytest.raises(errors.BadSampleError, match=words):
        run(lambda: fn.decoders.json(fed_bytes(content), **arguments))


def test_json_of_texts() -> None:
    def define() -> Any:
        text = fn.external_source(source=lambda: ["[[1, 2]]"] * N, dtype=types.STRING)
        return fn.decoders.json(text, dtype=types.UINT8, ndim=2)

    (found,) = run(define)
    assert found.as_array().tolist() == [[[1, 2]]] * N


def test_checkpoints_and_iterators_keep_pairs(tmp_path) -> None:
    """Resumed in the middle of an epoch, each text is still beside its number."""
    archive(tmp_path / "a.tar")
    arguments: dict[str, Any] = {"on_bad_sample": "skip", "enable_checkpointing": True}
    pipe = of_archive(tmp_path / "a.tar", 2, **arguments)
    pipe.run()
    rest = [[out.tolist() for out in pipe.run()] for _ in range(3)]
    again = of_archive(tmp_path / "a.tar", 2, **arguments)
    again.run()
    resumed = of_archive(tmp_path / "a.tar", 2, checkpoint=again.checkpoint(), **arguments)
    assert [[out.tolist() for out in resumed.run()] for _ in range(3)] == rest
