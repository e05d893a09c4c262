"""Floor 3: operators, each declared once.

Importing this package imports every module below it, and with that registers every built-in
operator: a new operator is a new file, and no list of files has to be kept.
"""

from __future__ import annotations

import importlib
import pkgutil

for _module in pkgutil.walk_packages(__path__, prefix=__name__ + "."):
    importlib.import_module(_module.name)
