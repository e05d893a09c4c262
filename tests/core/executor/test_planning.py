"""Plans of an operator at work, where they follow from shapes alone."""

from types import SimpleNamespace

import numpy as np

from headrace.executor.planning import _MANY_REMEMBERED, Planner
from headrace.operators.support.planning import PlanContext, Planned, Samples
from headrace.operators.support.schema import Spec
from headrace.types import DALIDataType


class _Halving:
    """What a `Planner` looks at of an operator; it notes how many samples it plans at a time."""

    needs_plan = True
    plans_values = False
    schema = SimpleNamespace(random=False)

    def __init__(self) -> None:
        self.counts: list[int] = []

    def plan(self, c: PlanContext, data: Samples) -> Planned:
        self.counts.append(len(data))
        return Planned(data.shapes // 2, (data.shapes[:, 0],))


def _planned(planner: Planner, shapes: list[tuple[int, ...]]) -> None:
    plans = planner.plan([Samples(shapes=shapes)], {}, range(len(shapes)))
    halves = [tuple(extent // 2 for extent in shape) for shape in shapes]
    assert list(plans.shapes[0]) == halves
    assert plans.rows == [(shape[0],) for shape in shapes]
    assert np.array_equal(plans.shape_arrays[0], halves)


def test_shapes_that_do_not_come_again_are_not_kept() -> None:
    op = _Halving()
    planner = Planner(op, None, (Spec(DALIDataType.UINT8, 2, "HW"),), constant=True)
    known = [(height, 7) for height in range(_MANY_REMEMBERED)]
    _planned(planner, known)
    _planned(planner, known[:8])
    assert op.counts == [_MANY_REMEMBERED]
    for _ in range(2):
        _planned(planner, [(9, width) for width in range(100, 108)])
    assert op.counts == [_MANY_REMEMBERED, 8, 8]
    # Few new ones among others are.
    mixed = [*known[:8], (4, 99)]
    for _ in range(2):
        _planned(planner, mixed)
    assert op.counts == [_MANY_REMEMBERED, 8, 8, 1]
