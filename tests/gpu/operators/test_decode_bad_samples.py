from __future__ import annotations

import numpy as np
import pytest

from headrace import types
from headrace.errors import BadSamplesError, OperatorError
from headrace.kernels.cpu.decode.header import read_header
from tests.support.encoded_images import jpeg2000s, jpegs, pngs, unsupported
from tests.support.gpu.decoding import encoded
from tests.support.gpu.run_operator import run_cpu_operator_on_batch, run_gpu_operator


def damaged() -> dict[str, bytes]:
    """Data of all kinds that nothing can be made of."""
    jpeg, png = jpegs()["jpeg-4:2:0"], pngs()["png-rgb8"]
    jp2 = jpeg2000s()["jp2-rgb"]
    return {
        **unsupported(),
        "jpeg-cut": jpeg[: len(jpeg) // 2],
        "jpeg-cut-by-two-bytes": jpeg[:-2],
        "jpeg-header-only": jpeg[:300],
        "png-cut": png[: len(png) // 2],
        "jp2-cut-in-the-header": jp2[:60],
        "jp2-damaged": jp2[:200] + bytes(len(jp2) - 400) + jp2[-200:],
    }


def reason(operator: str, row: np.ndarray, **args) -> tuple[type, str] | None:
    """What the CPU says of a sample; None if it takes it."""
    try:
        run_cpu_operator_on_batch(operator, [row], **args)
    except Exception as error:
        return type(error), str(error)
    return None


def mixed() -> tuple[list[np.ndarray], dict[int, tuple[type, str]]]:
    """Good and bad data in turn, and what the CPU says of the bad."""
    good = encoded({**jpegs(), **pngs()})
    rows = []
    for i, row in enumerate(encoded(damaged())):
        rows += [row, good[i]]
    said = {i: reason("decoders.image", row) for i, row in enumerate(rows)}
    return rows, {i: text for i, text in said.items() if text is not None}


def test_all_bad_samples_are_named_with_what_the_cpu_says():
    rows, said = mixed()
    assert len(said) >= len(damaged()) - 2
    with pytest.raises(BadSamplesError) as caught:
        run_gpu_operator("decoders.image", rows, sources=[f"file{i}" for i in range(len(rows))])
    assert set(caught.value.failures) == set(said)
    for i, error in caught.value.failures.items():
        kind, text = said[i]
        assert isinstance(error, OperatorError)
        assert isinstance(error, kind)
        assert type(error.__cause__) is kind
        assert str(error.__cause__) == text
        assert str(error).startswith(text)
        assert error.where.sample == i
        assert error.where.source == f"file{i}"
    assert str(caught.value.failures[min(said)]) in str(caught.value)


def test_without_them_the_batch_is_good():
    rows, said = mixed()
    good = [row for i, row in enumerate(rows) if i not in said]
    want = run_cpu_operator_on_batch("decoders.image", good)
    got = run_gpu_operator("decoders.image", good, jpeg_fancy_upsampling=True)
    for ours, theirs in zip(got, want, strict=True):
        assert ours.shape == theirs.shape


def test_a_batch_of_nothing_good():
    rows = encoded(unsupported())
    with pytest.raises(BadSamplesError) as caught:
        run_gpu_operator("decoders.image", rows)
    assert len(caught.value.failures) == len(rows)


def test_inks_cannot_be_had():
    rows = encoded({k: v for k, v in jpegs().items() if k in ("jpeg-cmyk", "jpeg-gray")})
    with pytest.raises(BadSamplesError, match="CMYK"):
        run_gpu_operator("decoders.image", rows, output_type=types.ANY_DATA)


def test_windows_that_leave_their_image():
    rows = encoded(jpegs())
    args = {"start": (0, 0), "end": (40, 30)}
    said = {i: reason("decoders.image_slice", row, **args) for i, row in enumerate(rows)}
    with pytest.raises(BadSamplesError) as caught:
        run_gpu_operator("decoders.image_slice", rows, **args)
    failures = caught.value.failures
    assert set(failures) == {i for i, text in said.items() if text is not None}
    assert {(type(e.__cause__), str(e.__cause__)) for e in failures.values()} == {
        text for text in said.values() if text is not None
    }


def test_a_damaged_middle_is_decoded_somehow():
    data = bytearray(jpegs()["jpeg-200x300"])
    for position in range(2000, 2100):
        data[position] ^= 0x55
    rows = [np.frombuffer(bytes(data), np.uint8), *encoded(jpegs())]
    got = run_gpu_operator("decoders.image", rows)
    assert got[0].shape == (200, 300, 3)


@pytest.mark.parametrize("seed", range(3))
def test_noise_in_the_data_ends_nothing(seed):
    rng = np.random.default_rng(seed)
    rows = []
    for row in encoded({**jpegs(), **jpeg2000s()}):
        row = row.copy()
        row[rng.integers(20, row.size, 5)] = rng.integers(0, 256, 5)
        rows.append(row)
    bad = set()
    try:
        run_gpu_operator("decoders.image", rows)
    except BadSamplesError as error:
        bad = set(error.failures)
    assert bad < set(range(len(rows)))


@pytest.mark.parametrize("operator", ["decoders.image", "decoders.image_crop"])
def test_images_of_too_many_pixels(operator):
    images = {**jpegs(), **pngs(), **jpeg2000s()}
    rows = encoded(images)
    sizes = [read_header(memoryview(data)) for data in images.values()]
    limit = 37 * 53 - 1
    large = {k for k, header in enumerate(sizes) if header.height * header.width > limit}
    assert large != set(range(len(rows)))
    for fancy in (False, True):
        with pytest.raises(BadSamplesError) as caught:
            run_gpu_operator(operator, rows, max_pixels=limit, jpeg_fancy_upsampling=fancy)
        assert set(caught.value.failures) >= large
        for k in large:
            assert "`max_pixels` lets 1,960 through" in str(caught.value.failures[k])
    plain = encoded({k: v for k, v in jpegs().items() if k == "jpeg-4:2:0"}) * 3
    with pytest.raises(BadSamplesError) as caught:
        run_gpu_operator(operator, plain, max_pixels=limit)
    assert set(caught.value.failures) == {0, 1, 2}
