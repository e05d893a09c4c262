"""Floor 7: faces for frameworks. Those that need one are released as distributions of their own."""

from __future__ import annotations

import pkgutil

__path__ = pkgutil.extend_path(__path__, __name__)
