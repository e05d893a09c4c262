"""The choice between one thread and several."""

from __future__ import annotations

import pytest

from penstock.experimental.dynamic.sharing import Sharing


@pytest.mark.parametrize("better", [False, True])
def test_what_is_faster_is_chosen_and_the_other_tried_again(better):
    sharing = Sharing()
    chosen = []
    for _ in range(200):
        shared = sharing.choose()
        chosen.append(shared)
        sharing.note(shared, 1.0 if shared == better else 2.0)
    assert set(chosen[:6]) == {False, True}
    later = chosen[6:]
    assert later.count(better) > 0.95 * len(later)
    assert later.count(not better) >= 3


def test_the_choice_follows_the_machine():
    sharing = Sharing()
    for run in range(1500):
        shared = sharing.choose()
        slow = shared if run < 300 else not shared
        sharing.note(shared, 2.0 if slow else 1.0)
    assert sharing.choose()
