"""Batches: rows side by side, ragged rows, rows that are another batch's."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest

from headrace import fn, pipeline_def, types
from headrace.executor.cpu.batch import BatchBuffer
from headrace.executor.cpu.shape_statistics import ShapeStatistics
from headrace.operators import Spec
from headrace.tensors.pool import HostPool


def outputs(graph, batch, **keywords):
    @pipeline_def(batch_size=len(batch), num_threads=2, device_id=None)
    def p():
        return graph(fn.external_source(source=lambda: batch, **keywords))

    pipe = p()
    return [pipe.run() for _ in range(3)][-1]


def test_equal_shapes_lie_side_by_side():
    (out,) = outputs(lambda x: x + 1, np.zeros((4, 3), np.int32))
    assert out.is_dense_tensor()


def test_ragged_once_and_dense_again():
    shapes = [[(2,), (3,)], [(2,), (2,)], [(2,), (2,)], [(2,), (2,)]]
    batches = [[np.ones(s) for s in batch] for batch in shapes]

    @pipeline_def(batch_size=2, num_threads=1, prefetch_queue_depth=1)
    def p():
        return fn.external_source(source=batches) * 2

    pipe = p()
    dense = [pipe.run()[0].is_dense_tensor() for _ in batches]
    assert not dense[0]
    assert dense[-1]


@pytest.mark.in_threads
def test_looking_at_data_in_another_way_copies_nothing():
    data = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    x, y, z = outputs(
        lambda x: (x, fn.reshape(x, shape=[4, 3]), fn.reinterpret(x, dtype=types.UINT8)), data
    )
    assert y.data_ptr() == z.data_ptr() == x.data_ptr()
    assert y.is_dense_tensor()
    np.testing.assert_array_equal(y.as_array(), data.reshape(2, 4, 3))
    assert z.shape() == [(3, 16)] * 2


def test_copies_have_memory_of_their_own():
    x, y = outputs(lambda x: (x, fn.copy(x)), np.ones((2, 3), np.int32))
    y.at(0)[:] = 5
    assert x.at(0).tolist() == [1, 1, 1]


def test_parts_and_ragged_views():
    batch = [np.arange(n, dtype=np.int16) for n in (3, 5)]
    x, y = outputs(lambda x: (x[1:], fn.reshape(x, shape=[-1, 1])), batch)
    assert [s.tolist() for s in map(np.asarray, x)] == [[1, 2], [1, 2, 3, 4]]
    assert y.shape() == [(3, 1), (5, 1)]
    whole, part = outputs(lambda x: (x, x[1:]), np.arange(8).reshape(2, 4))
    assert part.as_array().tolist() == [[1, 2, 3], [5, 6, 7]]
    assert whole.shape() == [(4,), (4,)]


class CountingPool(HostPool):
    """Ordinary memory that says how much of it was asked for."""

    def __init__(self):
        super().__init__()
        self.bytes = 0

    def empty(self, shape, dtype):
        self.bytes += math.prod(shape) * np.dtype(dtype).itemsize
        return super().empty(shape, dtype)


def filled(shapes, history):
    pool = CountingPool()
    buffer = BatchBuffer(len(shapes), Spec(types.UINT8, 2), history, pool)
    for index, shape in enumerate(shapes):
        buffer.row(index, shape)[...] = index % 251
    return buffer.tensor_list(), pool.bytes


def test_a_large_first_sample_does_not_decide_about_all_others():
    history = ShapeStatistics()
    small = 511 * 16
    batch, asked = filled([(6000, 600), *[(4, 4)] * 511], history)
    assert asked == 6000 * 600 + small
    assert [batch.at(k).shape for k in (0, 1)] == [(6000, 600), (4, 4)]
    batch, asked = filled([(4, 4)] * 512, history)
    assert asked == 512 * 16
    batch, asked = filled([(6000, 600), *[(4, 4)] * 511], history)
    assert asked == 6000 * 600 + small


def test_many_large_samples_of_one_shape_lie_in_one_piece():
    history = ShapeStatistics()
    shapes = [(6000, 600)] * 80
    whole = 80 * 6000 * 600
    first, asked = filled(shapes, history)
    assert first.is_dense_tensor()
    assert [int(first.at(k)[-1, -1]) for k in (0, 1, 79)] == [0, 1, 79]
    assert asked == 2 * whole
    second, asked = filled(shapes, history)
    assert second.is_dense_tensor()
    assert asked == whole


def test_rows_are_all_there_before_another_thread_sees_any():
    class Dense:
        """A batch of which a second thread asks for the rows while the first row is made."""

        def __getitem__(self, key):
            if not readers:
                readers.append(threading.Thread(target=lambda: found.extend(buffer.rows)))
                readers[0].start()
                readers[0].join(0.1)  # ends at once if it does not wait for the others
            return values[key]

    readers: list[threading.Thread] = []
    found: list[np.ndarray | None] = []
    values = np.arange(6).reshape(3, 2)
    buffer = BatchBuffer(3, Spec(types.INT64, 1), ShapeStatistics(), HostPool())
    buffer.adopt(values)
    buffer._dense = Dense()
    assert [row.tolist() for row in buffer.rows] == values.tolist()
    readers[0].join()
    assert [row.tolist() for row in found] == values.tolist()


def test_arrays_of_packed_rows_are_made_when_somebody_asks():
    buffer = BatchBuffer(4, Spec(types.INT32, 1), ShapeStatistics(), HostPool())
    shapes = np.array([[2], [1]], np.int64)
    first, last = buffer.rows_for([0, 1], shapes), buffer.rows_for([2, 3], shapes)
    first.flat[:], last.flat[:] = 1, 2
    batch = buffer.tensor_list()
    assert len(batch) == 4
    assert batch.shape() == [(2,), (1,), (2,), (1,)]
    assert first._rows is None
    assert [row.tolist() for row in map(np.asarray, batch)] == [[1, 1], [1], [2, 2], [2]]
    # Memory that a sample gets later is its own.
    buffer.rows_for([1, 2], shapes + 1).flat[:] = 3
    buffer.row(3, (2,))[:] = 4
    assert [row.tolist() for row in buffer.rows] == [[1, 1], [3, 3, 3], [3, 3], [4, 4]]
    assert buffer.tensor_list().shape() == [(2,), (3,), (2,), (2,)]
