"""References to a pipeline's later outputs, and how worker processes collate them."""

from __future__ import annotations

import secrets
from typing import Any, Self

import numpy as np
import torch
from torch.utils.data._utils.collate import default_collate_fn_map

from headrace.errors import ArgumentValueError, UsageError


class SampleCall:
    """The inputs of one sample, from its transform until it is collated."""

    def __init__(self, proxy: Proxy, inputs: dict[str, Any]) -> None:
        self.proxy = proxy
        self.inputs = inputs
        self.run: DALIPipelineRunRef | None = None
        """The batch it is in, once it is collated."""


class DALIOutputSampleRef:
    """One output for one sample.

    Parameters
    ----------
    call
        The sample.
    output_idx
        Number of the output.
    """

    def __init__(self, call: SampleCall, output_idx: int) -> None:
        self.call = call
        self.output_idx = output_idx

    def __repr__(self) -> str:
        return f"DALIOutputSampleRef(output_idx={self.output_idx})"


class DALIPipelineRunRef:
    """One batch of the pipeline.

    Parameters
    ----------
    batch_id
        What no other batch has.
    size
        How many samples it has.
    call_args
        The samples of each input, by its name, until the server has them.
    """

    def __init__(self, batch_id: str, size: int, call_args: dict[str, list[Any]]) -> None:
        self.batch_id = batch_id
        self.size = size
        self.call_args = call_args
        self.is_scheduled = False
        """True once it has been sent to the server."""

    def __repr__(self) -> str:
        return f"DALIPipelineRunRef({self.batch_id!r}, is_scheduled={self.is_scheduled})"


class DALIOutputBatchRef:
    """One output of one batch; `DALIServer.produce_data` puts a tensor in its place.

    Parameters
    ----------
    pipe_run_ref
        The batch.
    output_idx
        Number of the output.
    """

    def __init__(self, pipe_run_ref: DALIPipelineRunRef, output_idx: int) -> None:
        self.pipe_run_ref = pipe_run_ref
        self.output_idx = output_idx
        self.is_page_locked = False
        """True if the tensor is to be in page-locked memory."""

    def pin_memory(self) -> Self:
        """Have the tensor in page-locked memory, for a `DataLoader` with `pin_memory`."""
        self.is_page_locked = True
        return self

    def __repr__(self) -> str:
        return f"DALIOutputBatchRef({self.pipe_run_ref}, output_idx={self.output_idx})"


class Proxy:
    """A transform: takes the inputs of a sample, returns what stands for its outputs.

    It can be pickled for the workers of a `DataLoader`.
    """

    def __init__(
        self, names: list[str], num_outputs: int, requests: Any, deterministic: bool
    ) -> None:
        self._names = names
        self._num_outputs = num_outputs
        self._requests = requests
        self._deterministic = deterministic

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Note the inputs of a sample."""
        if args and (len(args) != 1 or len(self._names) != 1 or kwargs):
            raise self._wrong(args, kwargs)
        given = {self._names[0]: args[0]} if args else kwargs
        if given.keys() != set(self._names):
            raise self._wrong(args, kwargs)
        call = SampleCall(self, {name: _as_array(given[name]) for name in self._names})
        outputs = tuple([DALIOutputSampleRef(call, k) for k in range(self._num_outputs)])
        return outputs[0] if len(outputs) == 1 else outputs

    def _wrong(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ArgumentValueError:
        names = ", ".join(self._names)
        expected = f"({names})" if len(self._names) == 1 else f"(*, {names})"
        given = [type(a).__name__ for a in args]
        given += [f"{name}={type(value).__name__}" for name, value in kwargs.items()]
        reason = " Got too many positional arguments" if args else " Got"
        return ArgumentValueError(
            f"Expected signature is: {expected}.{reason}: ({', '.join(given)})."
        )

    def schedule(self, calls: list[SampleCall]) -> DALIPipelineRunRef:
        """The batch of these samples, on its way to the server."""
        inputs = {name: [call.inputs[name] for call in calls] for name in self._names}
        run = DALIPipelineRunRef(secrets.token_hex(12), len(calls), inputs)
        if not self._deterministic:
            self._requests.put((run.batch_id, inputs))
            run.call_args, run.is_scheduled = {}, True
        for call in calls:
            call.run, call.inputs = run, {}
        return run


def _as_array(value: Any) -> Any:
    return value.numpy() if isinstance(value, torch.Tensor) else np.asarray(value)


def _collate_dali_output_sample_ref_fn(
    samples: list[DALIOutputSampleRef], *, collate_fn_map: Any = None
) -> DALIOutputBatchRef:
    """Collate outputs for PyTorch: schedules the batch, once for all outputs."""
    first = samples[0].call
    run = first.run
    runs = {id(sample.call.run) for sample in samples}
    same = len({(sample.output_idx, id(sample.call.proxy)) for sample in samples}) == 1
    if len(runs) != 1 or not same or (run is not None and run.size != len(samples)):
        raise UsageError(
            "All samples should belong to the same batch: outputs of a pipeline are collated all "
            "at once, each of the same samples."
        )
    if run is None:
        run = first.proxy.schedule([sample.call for sample in samples])
    return DALIOutputBatchRef(run, samples[0].output_idx)


default_collate_fn_map[DALIOutputSampleRef] = _collate_dali_output_sample_ref_fn
