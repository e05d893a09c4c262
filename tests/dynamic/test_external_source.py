import numpy as np
import pytest

import headrace.experimental.dynamic as ndd


def array(*numbers):
    return np.array(numbers, np.int32)


def pair(number):
    return ndd.batch([array(number), array(-number)])


def plain(output):
    if isinstance(output, tuple):
        return tuple(plain(part) for part in output)
    if isinstance(output, ndd.Batch):
        return [np.asarray(sample).tolist() for sample in output]
    return np.asarray(output).tolist()


def until_the_end(source, most=6):
    found = []
    for _ in range(most):
        try:
            found.append(plain(source()))
        except StopIteration:
            found.append(None)
    return found


def generator():
    yield array(1)
    yield array(2)


class Counting:
    def __init__(self):
        self.number = 0

    def __call__(self):
        self.number += 1
        if self.number > 2:
            raise StopIteration
        return array(self.number)


@pytest.mark.parametrize(
    "source", [[array(1), array(2)], generator, iter([array(1), array(2)]), Counting()]
)
def test_data_ends(source):
    assert until_the_end(ndd.ExternalSource(source), 4) == [[1], [2], None, None]


@pytest.mark.parametrize("source", [[array(1), array(2)], generator])
def test_cycles(source):
    quiet = ndd.ExternalSource(source, cycle="quiet")
    assert until_the_end(quiet, 5) == [[1], [2], [1], [2], [1]]
    raising = ndd.ExternalSource(source, cycle="raise")
    assert until_the_end(raising, 6) == [[1], [2], None, [1], [2], None]


def test_nothing_to_cycle_through():
    assert until_the_end(ndd.ExternalSource([], cycle=True), 2) == [None, None]


def test_sizes():
    source = ndd.ExternalSource(lambda: array(1, 2))
    assert isinstance(source(), ndd.Tensor)
    assert plain(source(batch_size=3)) == [[1, 2]] * 3
    batches = ndd.ExternalSource(lambda: pair(1))
    assert plain(batches(batch_size=2)) == plain(batches()) == [[1], [-1]]
    with pytest.raises(ValueError, match="2 samples"):
        batches(batch_size=3)


@pytest.mark.parametrize("size", [1.5, "a", True])
def test_sizes_are_integers(size):
    with pytest.raises(TypeError):
        ndd.ExternalSource(lambda: array(1))(batch_size=size)


def test_outputs():
    source = ndd.ExternalSource(
        lambda: (array(1, 2), array(300)), 2, layout=["X", None], dtype=(None, ndd.uint8)
    )
    one, two = source()
    assert (one.layout, two.layout) == ("X", None)
    assert (one.dtype, two.dtype) == (ndd.int32, ndd.uint8)
    assert plain(two) == [255]
    listed = ndd.ExternalSource(lambda: [array(1), array(2)])
    assert plain(listed()) == [[1], [2]]


@pytest.mark.parametrize("wrong", [array(1), (array(1),), {"a": 1}, None])
def test_wrong_numbers_of_outputs(wrong):
    with pytest.raises(ValueError, match="2 outputs"):
        ndd.ExternalSource(lambda: wrong, 2)()


def test_outputs_are_all_batches_or_none():
    mixed = ndd.ExternalSource(lambda: (pair(1), array(5)), 2)
    with pytest.raises(TypeError, match="batch_size"):
        mixed()
    assert plain(mixed(batch_size=2)) == ([[1], [-1]], [[5], [5]])


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"source": 5}, TypeError),
        ({"source": None}, TypeError),
        ({"source": lambda i: i}, ValueError),
        ({"source": lambda i=1: i}, ValueError),
        ({"source": generator(), "cycle": True}, TypeError),
        ({"source": lambda: 1, "cycle": True}, ValueError),
        ({"source": [1], "cycle": 1}, ValueError),
        ({"source": [1], "cycle": "bogus"}, ValueError),
        ({"source": [1], "num_outputs": 0}, ValueError),
        ({"source": [1], "num_outputs": 1.5}, TypeError),
        ({"source": [1], "layout": ["X", "Y"]}, ValueError),
        ({"source": [1], "num_outputs": 2, "dtype": [ndd.int8]}, ValueError),
    ],
)
def test_what_is_no_source(arguments, error):
    with pytest.raises(error):
        ndd.ExternalSource(**arguments)


def test_errors_of_the_source_are_its_own():
    def broken():
        raise KeyError("boo")

    with pytest.raises(KeyError, match="boo"):
        ndd.ExternalSource(broken)()


def captured(source, size=2):
    return [plain(ndd.cast(data, dtype=ndd.float32) * 2) for data in source.captured(size)]


def test_captured_loops():
    batches = [pair(k) for k in range(7)]
    expected = [[[2.0 * k], [-2.0 * k]] for k in range(7)]
    assert captured(ndd.ExternalSource(batches)) == expected
    again = ndd.ExternalSource(batches, cycle="raise")
    assert captured(again) == captured(again) == expected
    tensors = ndd.ExternalSource([array(k) for k in range(4)])
    assert captured(tensors) == [[[2.0 * k]] * 2 for k in range(4)]


def test_captured_loops_with_several_outputs():
    source = ndd.ExternalSource([(pair(k), array(k)) for k in range(6)], 2)
    found = [plain(one + two) for one, two in source.captured(2)]
    assert found == [[[2 * k], [0]] for k in range(6)]


def test_types_may_change_in_captured_loops():
    kinds = [np.int32, np.int32, np.int32, np.float32, np.int32, np.uint8, np.uint8, np.uint8]
    source = ndd.ExternalSource([ndd.batch([np.ones(k + 1, t)]) for k, t in enumerate(kinds)])
    found = [(str((data + 1).dtype), plain(data + 1)) for data in source.captured(1)]
    expected = [
        (str((data + 1).dtype), plain(data + 1))
        for data in (ndd.batch([np.ones(k + 1, t)]) for k, t in enumerate(kinds))
    ]
    assert found == expected


def test_numbers_of_a_captured_loop_may_be_some_of_many():
    data = ndd.as_tensor(np.arange(3, dtype=np.int16))
    for number in range(100, 140):  # from some number on they are data, and no constants
        (data + number).evaluate()
    source = ndd.ExternalSource([pair(k) for k in range(9)])
    # That nothing could be captured would be a warning, which is an error here.
    seen = [plain(batch + 141 - 41)[0][0] for batch in source.captured(2)]
    assert seen == [100 + k for k in range(9)]


def test_leaving_a_captured_loop_loses_nothing():
    source = ndd.ExternalSource([pair(k) for k in range(9)])
    seen = []
    for data in source.captured(2):
        seen.append(plain(data + 0)[0][0])
        if len(seen) == 4:
            break
    seen += [plain(data + 0)[0][0] for data in source.captured(2)]
    assert seen == list(range(9))


@pytest.mark.parametrize("taken", [1, 2, 3, 5])
def test_calls_go_on_where_a_captured_loop_was_left(taken):
    source = ndd.ExternalSource([pair(k) for k in range(9)])
    loop = source.captured(2)
    seen = [plain(next(loop) + 0)[0][0] for _ in range(taken)]
    loop.close()
    seen += [plain(source(batch_size=2))[0][0] for _ in range(9 - taken)]
    assert seen == list(range(9))
    assert until_the_end(source, 1) == [None]


def test_a_loop_within_an_open_one_over_the_same_source_is_that_one():
    source = ndd.ExternalSource([pair(k) for k in range(12)])
    seen = []
    for data in source.captured(2):
        seen.append(plain(data + 0)[0][0])
        for other in source.captured(2):
            seen.append(plain(other + 0)[0][0])
            if seen[-1] % 3 == 2:
                break
    assert seen == list(range(12))


def test_errors_come_where_they_belong():
    def numbers():
        for k in range(5):
            yield pair(k)
        raise KeyError("boo")

    seen = []

    def loop():
        seen.extend(plain(data + 0)[0][0] for data in ndd.ExternalSource(numbers).captured(2))

    with pytest.raises(KeyError, match="boo") as caught:
        loop()
    assert seen == list(range(5))
    (note,) = caught.value.__notes__
    assert 'raise KeyError("boo")' in note  # it was read ahead


def test_uses_do_not_mix():
    source = ndd.ExternalSource(lambda: pair(1))
    source()
    with pytest.raises(RuntimeError, match="calls"):
        source.captured(2)
    source = ndd.ExternalSource(lambda: pair(1))
    loop = source.captured(2)
    next(loop)
    with pytest.raises(RuntimeError, match="captured"):
        source()
    with pytest.raises(ValueError, match="from 2 to 3"):
        next(source.captured(3))


def test_sources_inside_of_captured_loops(tmp_path):
    (tmp_path / "a").mkdir()
    for k in range(8):
        (tmp_path / "a" / f"{k}.jpg").write_bytes(bytes([k]))
    results = []
    for capture in (False, True):
        numbers = iter(range(100))
        source = ndd.ExternalSource(array(number) for number in numbers)
        reader = ndd.readers.File(file_root=str(tmp_path))
        results.append(
            [
                plain((data + 1) * 2 + source(batch_size=2))
                for data, _ in reader.next_epoch(batch_size=2, capture=capture)
            ]
        )
    assert results[0] == results[1]
