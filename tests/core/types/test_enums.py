"""Enumerations behave as constants with a number."""

from __future__ import annotations

import copy
import pickle

import pytest

from headrace import types

MEMBERS = [
    types.FLOAT,
    types.UINT8,
    types.NO_TYPE,
    types.RGB,
    types.INTERP_NN,
    types.INTERP_LANCZOS3,
]


@pytest.mark.parametrize("member", MEMBERS, ids=str)
def test_member(member):
    cls = type(member)
    assert cls(member.value) is cls(member) is cls[member.name] is member
    assert int(member) == member.value == member
    assert hash(member) == hash(member.value)
    assert {member.value: "found"}[member] == "found"
    assert bool(member)
    assert str(member) == f"{member}" == f"{cls.__name__}.{member.name}"
    assert repr(member) == f"<{cls.__name__}.{member.name}: {member.value}>"
    assert f"{member:>30}" == str(member).rjust(30)
    assert pickle.loads(pickle.dumps(member)) is member
    assert copy.deepcopy(member) is member
    assert list(range(30))[member] == list(range(30))[member.value]
    assert cls.__members__[member.name] is member
    assert cls.__module__ == "headrace.types"


def test_zero_is_true():
    """RGB, UINT8 and INTERP_NN are 0; `given or default` must not take them for nothing."""
    assert (types.RGB or types.BGR) is types.RGB
    assert (types.UINT8 or types.FLOAT) is types.UINT8


@pytest.mark.parametrize("value", [99, "FLOAT", 0.5, None])
def test_no_such_member(value):
    with pytest.raises((ValueError, TypeError)):
        types.DALIDataType(value)


def test_members_differ_from_other_values():
    assert types.FLOAT != "FLOAT"
    assert types.FLOAT is not None
    assert types.FLOAT in [9]
    assert types.PipelineAPIType.BASIC != 0
    assert types.PipelineAPIType(1) is types.PipelineAPIType.ITERATOR
