"""Rewrites expressions: conditional ones, `and`, `or`, `not`, chained comparisons, and calls.

Operands stay where they are, in the order of Python, and are evaluated only where they are
needed: ``a if c else b`` becomes::

    _headrace.either(
        _headrace.decide(c),
        a if _headrace.if_true() else None,
        b if _headrace.if_false() else None,
    )
"""

from __future__ import annotations

import ast
from typing import TypeVar

from headrace.graph.rewritten import HELPER

_N = TypeVar("_N", bound=ast.AST)


def call(function: str, *arguments: ast.expr) -> ast.Call:
    """A call of a function of the run-time helpers."""
    return ast.Call(
        ast.Attribute(ast.Name(HELPER, ast.Load()), function, ast.Load()), list(arguments), []
    )


def located(new: _N, old: ast.AST) -> _N:
    """Give the generated nodes of `new` the position where `old` begins; others keep theirs.

    Python takes a call of an attribute to be where the attribute ends, so `new` is one line.
    """
    ast.copy_location(new, old)
    if new.end_lineno != new.lineno:  # type: ignore[attr-defined]
        new.end_lineno = new.lineno  # type: ignore[attr-defined]
        new.end_col_offset = new.col_offset + 1  # type: ignore[attr-defined]
    return ast.fix_missing_locations(new)


class ExpressionRewriter(ast.NodeTransformer):
    """Rewrites the expressions within a function."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names
        self.in_iterable = 0
        self.temporaries = 0

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if isinstance(node.ctx, ast.Load) and node.id in self.names:
            return located(call("read", node), node)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        test, body, orelse = (self.visit(e) for e in (node.test, node.body, node.orelse))
        new = call("either", call("decide", test), _if("if_true", body), _if("if_false", orelse))
        return located(new, node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        name, needed = ("and_", "if_true") if isinstance(node.op, ast.And) else ("or_", "if_false")
        *firsts, result = (self.visit(value) for value in node.values)
        for left in reversed(firsts):
            begin = call("decide_logical", left, ast.Constant(name.rstrip("_")))
            result = located(call(name, begin, _if(needed, result)), node)
        return result  # type: ignore[no-any-return]

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        node.operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return located(call("not_", node.operand), node)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        middle = node.comparators[:-1]
        simple = all(isinstance(m, (ast.Name, ast.Constant)) for m in middle)
        if not middle or (self.in_iterable and not simple):
            self.generic_visit(node)
            return node
        links: list[ast.expr] = []
        left = node.left
        for operation, right in zip(node.ops, node.comparators, strict=True):
            again = right
            if right is not node.comparators[-1] and not simple:
                self.temporaries += 1
                name = f"{HELPER}_middle_{self.temporaries}"
                right = ast.NamedExpr(ast.Name(name, ast.Store()), right)
                again = ast.Name(name, ast.Load())
            links.append(located(ast.Compare(left, [operation], [right]), node))
            left = again
        return self.visit_BoolOp(located(ast.BoolOp(ast.And(), links), node))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if _leaves_alone(node.func):
            return node
        self.generic_visit(node)
        node.func = located(call("call", node.func), node.func)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        node.args.defaults = [self.visit(d) for d in node.args.defaults]
        node.args.kw_defaults = [d and self.visit(d) for d in node.args.kw_defaults]
        if not any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in ast.walk(node.body)):
            a = node.args
            own = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]
            node.body = ExpressionRewriter(self.names - {arg.arg for arg in own}).visit(node.body)
        return node

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        return self._comprehension(node, ["elt"])

    def visit_SetComp(self, node: ast.SetComp) -> ast.expr:
        return self._comprehension(node, ["elt"])

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.expr:
        return self._comprehension(node, ["elt"])

    def visit_DictComp(self, node: ast.DictComp) -> ast.expr:
        return self._comprehension(node, ["key", "value"])

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, parts: list[str]
    ) -> ast.expr:
        for generator in node.generators:
            # Python allows no assignment expression here, which chained comparisons need.
            self.in_iterable += 1
            iterable = self.visit(generator.iter)
            self.in_iterable -= 1
            if not generator.is_async:
                iterable = located(call("iterable", iterable), generator.iter)
            generator.iter = iterable
            generator.ifs = [self.plain(e, "the `if` of a comprehension") for e in generator.ifs]
        for part in parts:
            setattr(node, part, self.visit(getattr(node, part)))
        return node

    def plain(self, node: ast.expr, what: str) -> ast.expr:
        """The expression for a condition that cannot be data."""
        return located(call("plain", self.visit(node), ast.Constant(what)), node)


def _leaves_alone(function: ast.expr) -> bool:
    """Return True if calling `function` leaves its arguments unchanged."""
    name = function.attr if isinstance(function, ast.Attribute) else function
    return (name.id if isinstance(name, ast.Name) else name) == "do_not_convert"


def _if(function: str, value: ast.expr) -> ast.IfExp:
    return ast.IfExp(call(function), value, ast.Constant(None))
