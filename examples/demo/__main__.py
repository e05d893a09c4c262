"""``hatch run demo``: says that it starts before PyTorch is loaded, which takes seconds."""

from __future__ import annotations

print("Setting up: loading PyTorch ...", flush=True)

from examples.demo.train import main  # noqa: E402

main()
