"""What the GPU did in some iterations, by PyTorch's profiler, which sees all of the process."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any


def print_trace(
    title: str, step: Callable[[], int], finish: Callable[[], None], iterations: int = 10
) -> None:
    """Run `iterations` steps; print the GPU's time an iteration, whole and by kernel."""
    from torch.autograd import DeviceType  # type: ignore[attr-defined]
    from torch.profiler import ProfilerActivity, profile

    step()
    finish()
    try:
        with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as profiler:
            for _ in range(iterations):
                step()
            finish()
    except (AssertionError, RuntimeError) as error:  # where the counters are not to be had
        print(f"{title}: the profiler does not work here: {error}")
        return
    spans: list[tuple[float, float]] = []
    times: dict[str, list[float]] = defaultdict(list)
    for event in profiler.events():
        if event.device_type != DeviceType.CUDA:
            continue
        span: Any = event.time_range
        spans.append((span.start, span.end))
        times[event.name].append(span.end - span.start)
    if not spans:
        print(f"{title}: the profiler saw nothing of the GPU")
        return
    wall = max(end for _, end in spans) - min(start for start, _ in spans)
    busy = _covered(spans)
    print(
        f"{title}: {wall / iterations / 1e3:.3f} ms an iteration, "
        f"the GPU busy in {busy / wall:.0%} of it"
    )
    for name, found in sorted(times.items(), key=lambda item: -sum(item[1]))[:14]:
        each = sum(found) / iterations
        print(f"  {each:9.1f} us an iteration, {len(found) / iterations:5.1f} times  {name[:100]}")


def _covered(spans: list[tuple[float, float]]) -> float:
    """Length of the union of intervals."""
    covered, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        covered += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return covered
