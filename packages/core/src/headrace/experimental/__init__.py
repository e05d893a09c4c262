"""Parts of the interface that DALI calls experimental."""

import pkgutil

# The plugin for PyTorch is a distribution of its own that puts `torchvision` elsewhere on the path.
__path__ = pkgutil.extend_path(__path__, __name__)


def __dir__() -> list[str]:
    return ["dynamic", *(m.name for m in pkgutil.iter_modules(__path__) if m.name == "torchvision")]
