"""PyTorch with one thread, since several wait for one another on a loaded machine, and loaders that
end soon: what an error keeps alive waits five seconds for its workers otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import torch.utils.data


@pytest.fixture(autouse=True, scope="package")
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.utils.data._utils, "MP_STATUS_CHECK_INTERVAL", 0.5)
        yield
    torch.set_num_threads(before)
