"""Imports of all modules that enter kernels into the table."""

from headrace.experimental.torchvision import _color as _color
from headrace.experimental.torchvision import _elements as _elements
from headrace.experimental.torchvision import _filters as _filters
from headrace.experimental.torchvision import _resize as _resize
from headrace.experimental.torchvision import _warps as _warps
