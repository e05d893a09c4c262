import importlib
import importlib.util
import sys
import types

import numpy as np
import pytest

import headrace.experimental.dynamic as ndd

torch = pytest.importorskip("torch")
NODES = "headrace.experimental.dynamic.pytorch.nodes"


class BaseNode:
    """As much of torchdata's class as its nodes rely on, where it is not installed."""

    def __init__(self, *args, **kwargs):
        self.begun = False

    def reset(self, initial_state=None):
        self.begun = True

    def __iter__(self):
        return self

    def __next__(self):
        if not self.begun:
            self.reset(None)
        return self.next()

    def state_dict(self):
        return self.get_state()


@pytest.fixture
def nodes(monkeypatch):
    if importlib.util.find_spec("torchdata") is None:
        module = types.ModuleType("torchdata.nodes")
        module.BaseNode = BaseNode
        monkeypatch.setitem(sys.modules, "torchdata", types.ModuleType("torchdata"))
        monkeypatch.setitem(sys.modules, "torchdata.nodes", module)
    monkeypatch.delitem(sys.modules, NODES, raising=False)
    yield importlib.import_module(NODES)
    sys.modules.pop(NODES, None)


@pytest.fixture
def files(tmp_path):
    (tmp_path / "a").mkdir()
    for k in range(10):
        (tmp_path / "a" / f"{k}.jpg").write_bytes(bytes([k, k]))
    return {"file_root": str(tmp_path)}


def test_torchdata_is_needed(monkeypatch):
    monkeypatch.delitem(sys.modules, NODES, raising=False)
    monkeypatch.setitem(sys.modules, "torchdata", None)
    with pytest.raises(ImportError, match="torchdata"):
        importlib.import_module(NODES)


def test_a_chain(nodes, files):
    reader = nodes.Reader(ndd.readers.File, batch_size=4, **files)
    chain = nodes.ToTorch(nodes.DictMapper(reader, lambda d: ndd.cast(d, dtype=ndd.float32)))
    assert reader.get_metadata()["epoch_size"] == 10
    for begin in (0, 2):
        chain.reset()
        seen = list(chain)
        assert [len(step) for step in seen] == [2] * 3
        data = torch.cat([step[0] for step in seen])
        assert data.dtype == torch.float32
        assert data[:, 0].tolist() == [(begin + k) % 10 for k in range(12)]


def test_names(nodes, files):
    reader = nodes.Reader(ndd.readers.File, batch_size=None, output_names=("x", "y"), **files)
    step = next(reader)
    assert list(step) == ["x", "y"]
    assert isinstance(step["x"], ndd.Tensor)
    for names in (("x",), "xyz"):
        with pytest.raises(ValueError, match="names"):
            nodes.Reader(ndd.readers.File, batch_size=4, output_names=names, **files)


@pytest.mark.parametrize("taken", [0, 1, 3])
def test_resumed_is_uninterrupted(nodes, files, taken):
    def chain():
        reader = nodes.Reader(ndd.readers.File, batch_size=3, random_shuffle=True, seed=1, **files)
        return nodes.ToTorch(nodes.DictMapper(reader, lambda d: d + 1))

    one = chain()
    one.reset()
    for _ in range(taken):
        next(one)
    state = one.state_dict()
    expected = [step[0].tolist() for step in one]
    one.reset()
    expected += [step[0].tolist() for step in one]
    other = chain()
    other.reset(state)
    found = [step[0].tolist() for step in other]
    other.reset()
    found += [step[0].tolist() for step in other]
    assert found == expected


def test_errors(nodes, files):
    with pytest.raises(RuntimeError, match="reset"):
        nodes.Reader(ndd.readers.File, batch_size=4, **files).next()
    with pytest.raises(ValueError, match="state"):
        nodes.Reader(ndd.readers.File, batch_size=4, **files).reset({"a": 1})
    with pytest.raises(TypeError, match="reader_type"):
        nodes.Reader("File", batch_size=4)
    with pytest.raises(TypeError, match="source"):
        nodes.DictMapper(5, lambda d: d)
    reader = nodes.Reader(ndd.readers.File, batch_size=4, **files)
    with pytest.raises(TypeError, match="map_fn"):
        nodes.DictMapper(reader, 5)
    with pytest.raises(KeyError):
        next(nodes.DictMapper(reader, lambda d: d, key="nope"))


def test_ragged_batches_do_not_become_tensors(nodes, files):
    reader = nodes.Reader(ndd.readers.File, batch_size=2, **files)
    ragged = nodes.DictMapper(reader, lambda d: ndd.batch([np.zeros(2), np.zeros(3)]))
    with pytest.raises((ValueError, RuntimeError)):
        next(nodes.ToTorch(ragged))


def test_nodes_are_an_attribute_where_torchdata_is(nodes, monkeypatch):
    assert ndd.pytorch.nodes is nodes
    sys.modules.pop(NODES)
    monkeypatch.delattr(ndd.pytorch, "nodes", raising=False)
    monkeypatch.setitem(sys.modules, "torchdata", None)
    monkeypatch.setitem(sys.modules, "torchdata.nodes", None)
    assert not hasattr(ndd.pytorch, "nodes")
