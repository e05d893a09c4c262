"""A JPEG file that is cut off is an error, whichever part of it is wanted."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import errors, fn, pipeline_def
from tests.support.images import encoded


@pytest.mark.parametrize("fuse", [True, False])
@pytest.mark.parametrize("lost", [2, 40, 900])
def test_cut_off_behind_the_wanted_part(fuse, lost):
    whole = encoded(240, 80)

    @pipeline_def(batch_size=1, num_threads=1, fuse=fuse)
    def p():
        data = fn.external_source(source=lambda: [whole[:-lost].copy()])
        return fn.crop(fn.decoders.image(data), crop=(10, 10), crop_pos_y=0.0)

    with pytest.raises(errors.BadSampleError, match=r"ends early(.|\n)*fn.decoders.image"):
        p().run()


@pytest.mark.parametrize("fuse", [True, False])
def test_bytes_behind_the_end_do_not_matter(fuse):
    whole = np.concatenate([encoded(240, 80), np.zeros(100_000, np.uint8)])

    @pipeline_def(batch_size=1, num_threads=1, fuse=fuse)
    def p():
        return fn.crop(fn.decoders.image(fn.external_source(source=lambda: [whole])), crop=(10, 10))

    assert p().run()[0].shape() == [(10, 10, 3)]
