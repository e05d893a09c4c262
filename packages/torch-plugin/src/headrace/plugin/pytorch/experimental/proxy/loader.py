"""A `DataLoader` whose batches hold the outputs of a pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch.utils.data

if TYPE_CHECKING:
    from headrace.plugin.pytorch.experimental.proxy.server import DALIServer


class DataLoader(torch.utils.data.DataLoader[Any]):
    """PyTorch's `DataLoader`, with the outputs of a pipeline in the place of what stands for them.

    The server is started when it is first iterated over, if it does not run.

    Parameters
    ----------
    dali_server : DALIServer
        The pipeline whose `proxy` the data set applies.
    *args, **kwargs
        Those of PyTorch's.
    """

    def __init__(self, dali_server: DALIServer, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.dali_server = dali_server

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        """Batches, with tensors."""
        self.dali_server.start_thread()
        return self._batches(super().__iter__())

    def _batches(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield self.dali_server.produce_data(batch)
