"""Arithmetic on nodes of the graph."""

from __future__ import annotations

import ast
import inspect

from headrace.graph import data_node
from headrace.operators.support.arithmetic.operations import OPERATIONS


def test_type_checkers_see_the_operators_that_there_are():
    [found] = [
        {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
        for node in ast.walk(ast.parse(inspect.getsource(data_node.DataNode)))
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    methods = {name for o in OPERATIONS.values() for name in (o.dunder, o.reflected) if name}
    assert found == methods | {"_call", "__getitem__"}  # these are given to the class as well
    assert methods <= vars(data_node.DataNode).keys()
