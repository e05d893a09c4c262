"""Conditional execution: Python's `if`, `and`, `or`, `not` on the data of a pipeline definition.

A definition is a Python function that runs once and makes a graph. For a condition that is known
only for each sample of a batch, both branches have to be run, so the function is rewritten from
its source before it is called:

* `source` finds the syntax tree of a function; `selection` says which functions are rewritten.
* `transformer` rewrites the tree, with `expressions`, `exits` (`return`, `continue`) and `places`
  (what a block assigns). `conversion` compiles it with the file name and the lines of the user.
* `runtime` has what the rewritten code calls; `blocks` and `choices` run the branches of
  statements and expressions, `joining` joins what they made.
* `tracing` says whether data is being traced, and by what; `graph_branches` is that for pipelines.

Where a condition is a plain Python value, the rewritten code does what Python does.
"""

from __future__ import annotations
