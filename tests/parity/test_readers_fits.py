"""`fn.experimental.readers.fits` against astropy: DALI's needs a GPU for whatever it reads, and not
for finding that it cannot."""

from __future__ import annotations

import numpy as np
import pytest
from astropy.io import fits

from headrace import errors
from headrace.kernels.cpu import fits_images
from headrace.types import DALIDataType
from tests.parity.support import assert_both_raise, run_graph
from tests.parity.words import check_words, of

_rng = np.random.default_rng(0)
DTYPES = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")
SHAPES = ((10,), (7, 10), (5, 1, 8), (2, 3, 1, 5))


def image(dtype, shape):
    return (_rng.integers(0, 100, shape) - (50 if dtype[0] != "u" else 0)).astype(dtype)


def write(path, *units):
    fits.HDUList([fits.PrimaryHDU(), *units]).writeto(path)
    return str(path)


def read(files, count=1, **arguments):
    """The outputs, as arrays."""

    def graph(lib):
        found = lib.fn.experimental.readers.fits(files=files, **arguments)
        return tuple(found) if isinstance(found, (list, tuple)) else (found,)

    (outputs,) = run_graph("headrace", graph, batch_size=count)
    return [output.samples for output in outputs]


def assert_read(files, **arguments):
    """That what is read is what astropy reads."""
    wanted = arguments.get("hdu_indices", [2])
    for number, samples in zip(wanted, read(files, len(files), **arguments), strict=True):
        for path, sample in zip(files, samples, strict=True):
            with fits.open(path) as units:
                want = units[number - 1].data
                assert sample.dtype == want.dtype.newbyteorder("=")
                np.testing.assert_array_equal(sample, want)


@pytest.mark.parametrize("compressed", [False, True])
def test_element_types_and_shapes(tmp_path, compressed):
    unit = fits.CompImageHDU if compressed else fits.ImageHDU
    for dtype in DTYPES:
        for shape in SHAPES:
            if compressed and (dtype in ("i8", "u8") or len(shape) > 3):
                continue  # nobody writes these
            files = [
                write(
                    tmp_path / f"{dtype}{len(shape)}{k}.fits",
                    unit(image(dtype, shape)),
                    unit(image("f4", (2, 3 + k))),
                )
                for k in range(2)
            ]
            assert_read(files, hdu_indices=[3, 2])


def test_compressions(tmp_path):
    for kind in ("GZIP_1", "GZIP_2", "PLIO_1", "HCOMPRESS_1"):
        unit = fits.CompImageHDU(image("u1", (8, 9)).astype("i2"), compression_type=kind)
        assert_read([write(tmp_path / f"{kind}.fits", unit)])
    noise = _rng.normal(size=(64, 64)).astype("f4")
    assert_read([write(tmp_path / "quantized.fits", fits.CompImageHDU(noise))])


def test_units(tmp_path):
    scaled = [fits.ImageHDU(image(dtype, (4, 5))) for dtype in ("i2", "i4")]
    for unit in scaled:
        unit.scale(unit.data.dtype.name, bscale=0.5, bzero=3)
    table = fits.BinTableHDU.from_columns([fits.Column("a", "J", array=np.arange(3))])
    first = fits.PrimaryHDU(image("f8", (3,)))
    path = str(tmp_path / "all.fits")
    fits.HDUList([first, table, *scaled]).writeto(path)
    assert_read([path], hdu_indices=[1, 4, 3, 1])
    path = write(tmp_path / "one.fits", fits.ImageHDU(image("i2", (4, 5))))
    assert_read([path])
    read([path], dtypes=[DALIDataType.INT16])
    with pytest.raises(errors.BadSampleError, match="Inconsistent data"):
        read([path], dtypes=[DALIDataType.INT32])


def test_errors(tmp_path, monkeypatch):
    (tmp_path / "text.fits").write_bytes(b"x" * 5000)
    (tmp_path / "empty.fits").write_bytes(b"")
    good = write(tmp_path / "good.fits", fits.ImageHDU(image("i2", (40, 50))))
    none = write(tmp_path / "none.fits", fits.ImageHDU())
    table = fits.BinTableHDU.from_columns([fits.Column("a", "J", array=np.arange(3))])
    other = write(tmp_path / "other.fits", table)

    def reading(path, **arguments):
        return of(lambda lib: lib.fn.experimental.readers.fits(files=[path], **arguments))

    check_words(
        [
            (reading(str(tmp_path / "text.fits")), "1st key not simple or xtension"),
            (reading(str(tmp_path / "empty.fits")), "tried to move past end of file"),
            (reading(good, hdu_indices=[3]), "tried to move past end of file"),
            (reading(none), "has to be greater than 0"),
            (reading(other), "only image_hdus are supported"),
            (reading(good, hdu_indices=[0]), "illegal hdu number"),
        ]
    )
    for arguments in ({"files": ["none.fits"]}, {"files": [good], "dtypes": [0, 0]}, {}):
        assert_both_raise(lambda lib: lib.fn.experimental.readers.fits(**arguments))  # noqa: B023
    (tmp_path / "cut.fits").write_bytes((tmp_path / "good.fits").read_bytes()[:8000])
    (tmp_path / "head.fits").write_bytes((tmp_path / "good.fits").read_bytes()[:4000])
    for name, words in (("cut", "within the data"), ("head", "within a header")):
        with pytest.raises(errors.BadSampleError, match=words):
            read([str(tmp_path / f"{name}.fits")])
    flat = write(tmp_path / "flat.fits", fits.ImageHDU(image("i2", (40,))))
    with pytest.raises(errors.BadSampleError, match="Inconsistent data"):
        read([good, flat], 2)
    packed = write(tmp_path / "packed.fits", fits.CompImageHDU(image("i2", (40, 50))))

    def missing(*_, **__):
        raise errors.MissingDependencyError("Run `pip install 'headrace[fits]'`.", name="astropy")

    monkeypatch.setattr(fits_images, "import_optional", missing)
    read([good])
    with pytest.raises(errors.MissingDependencyError):
        read([packed])
