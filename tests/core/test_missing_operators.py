"""What programs are told that use operators of DALI which are to come, or none at all."""

from __future__ import annotations

import pytest

from headrace import errors, fn, ops
from headrace.dali_names import DALI_CLASSES
from headrace.operators.support import registry


def missing():
    there = {schema.name for schema in registry.all_schemas()}
    return sorted(set(DALI_CLASSES) - there)


def follow(root, dotted):
    for part in dotted.split("."):
        root = getattr(root, part)
    return root


@pytest.mark.parametrize("name", missing())
def test_operators_to_come_say_so(name):
    module = name.rpartition(".")[0]
    for root, path in ((fn, name), (ops, f"{module}.{DALI_CLASSES[name]}".lstrip("."))):
        with pytest.raises(errors.OperatorNotReleasedError, match="is to come"):
            follow(root, path)


def test_second_names_are_there():
    for name in ("video_reader", "sequence_reader", "experimental.inflate", "readers.sequence"):
        assert callable(follow(fn, name))
    for name in ("VideoReader", "SequenceReader", "experimental.Inflate", "readers.Sequence"):
        assert callable(follow(ops, name))


def test_everything_else_is_there():
    for name in set(DALI_CLASSES) - set(missing()):
        assert callable(follow(fn, name))


def test_names_that_dali_has_not():
    for root, path in ((fn, "nonsense"), (fn, "decoders.nonsense"), (ops, "resize")):
        with pytest.raises(AttributeError, match="has no operator") as caught:
            follow(root, path)
        assert isinstance(caught.value, errors.UnknownOperatorError)
    assert not hasattr(fn, "nonsense")


def test_a_program_can_ask():
    assert hasattr(fn, "resize")
    assert not any(hasattr(fn, name) for name in missing() if "." not in name)


@pytest.mark.parametrize(
    ("root", "path", "meant"),
    [
        (fn, "resze", '"resize"'),
        (fn, "nemo_asr", '"fn.readers.nemo_asr"'),
        (fn, "decoders.imge", '"image"'),
        (ops, "resize", '"Resize"'),
        (ops, "Image", '"ops.decoders.Image"'),
    ],
)
def test_what_was_meant(root, path, meant):
    with pytest.raises(AttributeError, match=f"Did you mean {meant}"):
        follow(root, path)
