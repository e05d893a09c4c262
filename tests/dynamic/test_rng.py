import copy
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.experimental.dynamic import rng as rngs
from headrace.experimental.dynamic.rng import RNG, get_default_rng, resolve_rng, set_seed
from headrace.kernels.cpu.philox_draws import word
from headrace.kernels.cpu.philox_state import PhiloxState, words_of

FRESH = "Philox_0000000000000001_0000000000000000:0000000000000000_0"


def test_words_of_known_seeds():
    assert [RNG(1)() for _ in range(2)] == [3823634032, 3823634032]
    rng = RNG(1)
    assert [rng() for _ in range(5)] == [
        3823634032,
        3842641596,
        2515673792,
        3054873127,
        2886210587,
    ]
    rng = RNG(seed=1234)
    assert [rng() for _ in range(3)] == [546353992, 3665621163, 1140953199]


@pytest.mark.parametrize("seed", [-1, 2**64 - 1])
def test_seeds_have_64_bits(seed):
    assert str(RNG(seed).state) == "Philox_FFFFFFFFFFFFFFFF_0000000000000000:0000000000000000_0"


def test_the_state_counts_words():
    rng = RNG(1)
    assert rng.get_state() == FRESH
    for k in range(9):
        assert rng.get_state()[-1] == str(k % 4)
        rng()
    assert rng.get_state() == "Philox_0000000000000001_0000000000000000:0000000000000002_1"


@pytest.mark.parametrize("taken", [0, 1, 3, 4, 1023, 1024, 1025, 3001])
def test_a_state_restores(taken):
    rng = RNG(5)
    for _ in range(taken):
        rng()
    state = rng.get_state()
    expected = [rng() for _ in range(2000)]
    other = RNG(state=state)
    assert [other() for _ in range(2000)] == expected
    rng.set_state(str(state))
    assert [rng() for _ in range(5)] == expected[:5]
    rng = RNG(5)
    rng.advance(taken)
    assert [rng() for _ in range(5)] == expected[:5]


def test_the_counter_has_128_bits():
    rng = RNG(state="Philox_00000000000000AB_0000000000000002:FFFFFFFFFFFFFFFE_2")
    many = [rng() for _ in range(30)]
    assert rng.get_state() == "Philox_00000000000000AB_0000000000000003:0000000000000006_0"
    assert many == words_of(PhiloxState(0xAB, 2, 2**64 - 2), 10)[2:32]
    rng = RNG(state="Philox_00000000000000AB_FFFFFFFFFFFFFFFF:FFFFFFFFFFFFFFFF_3")
    rng()
    assert rng.get_state() == "Philox_00000000000000AB_0000000000000000:0000000000000000_0"


def test_copies_go_their_own_way():
    rng = RNG(3)
    rng()
    for other in (rng.clone(), copy.deepcopy(rng), pickle.loads(pickle.dumps(rng))):
        assert other.get_state() == rng.get_state()
        other()
        assert other.get_state() != rng.get_state()


def test_generators_without_a_seed_differ():
    assert RNG().get_state() != RNG().get_state()


def test_setting_the_seed_starts_anew():
    rng = RNG(9)
    rng()
    rng.seed = 1
    assert rng.state == FRESH
    with pytest.raises(AttributeError):
        _ = rng.seed


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"seed": 1, "state": FRESH}, ValueError),
        ({"seed": 1.5}, TypeError),
        ({"seed": "1"}, TypeError),
        ({"state": 5}, TypeError),
        ({"state": "x"}, ValueError),
        ({"state": FRESH + " "}, ValueError),
        ({"state": FRESH[:-1] + "4"}, ValueError),
        ({"state": FRESH.lower()}, ValueError),
        ({"state": FRESH.replace("1", "G")}, ValueError),
    ],
)
def test_what_makes_no_generator(arguments, error):
    with pytest.raises(error):
        RNG(**arguments)


def test_a_generator_cannot_go_back():
    with pytest.raises(ValueError, match="-1"):
        RNG(1).advance(-1)
    with pytest.raises(TypeError):
        RNG(1).advance(1.5)


def test_a_draw_takes_seven_words():
    rng = RNG(1)
    seed = rng.draw_seed()
    assert seed == 3823634032 | 3842641596 << 32
    assert rng.get_state().endswith(":0000000000000001_3")


def test_threads_have_generators_of_their_own():
    set_seed(1)
    assert get_default_rng().state == FRESH
    seen = []

    def look():
        set_seed(2)
        seen.append(get_default_rng())

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen[0] is not get_default_rng()
    assert get_default_rng().state == FRESH
    assert resolve_rng(None) is get_default_rng()


def test_threads_that_share_a_generator_get_different_words():
    rng = RNG(1)
    taken = [[] for _ in range(4)]

    def take(mine):
        mine += [rng() for _ in range(2000)]

    threads = [threading.Thread(target=take, args=(mine,)) for mine in taken]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = RNG(1)
    assert sorted(word for mine in taken for word in mine) == sorted(alone() for _ in range(8000))


@pytest.mark.parametrize("rng", [5, "x", rngs])
def test_what_is_no_generator(rng):
    with pytest.raises(ValueError, match="rng"):
        resolve_rng(rng)


@given(
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**64 - 1),
    st.integers(0, 3),
    st.lists(st.integers(0, 3000), max_size=5),
)
def test_however_words_are_taken_they_are_the_same(key, sequence, offset, phase, parts):
    state = PhiloxState(key, sequence, offset, phase)
    assert PhiloxState.parse(str(state)) == state
    one, other = RNG(state=str(state)), RNG(state=str(state))
    for part in parts:
        expected = [one() for _ in range(part)][-3:]
        other.advance(max(part - 3, 0))
        assert other.take(min(part, 3)) == expected
        assert other.get_state() == one.get_state() == str(state.advanced(part))
        state = state.advanced(part)


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_compiled_and_vectorised_words_agree(key, sequence, offset):
    expected = words_of(PhiloxState(key, sequence, offset), 3)
    numbers = (np.uint64(n) for n in (key, sequence, offset))
    place = tuple(numbers)
    assert [int(word(*place, np.uint64(n))) for n in range(12)] == expected
