"""Rewrites statements of a function: `if` runs the branches that its condition needs.

An `if` becomes::

    _headrace_if_1 = _headrace.if_(condition, names)
    if _headrace_if_1.runs_body:
        with _headrace_if_1:
            ...  # the body
    if _headrace_if_1.is_data:
        _headrace_if_1.next_branch()
        x = _headrace_if_1["x"]  # as it was before the body, for each variable
    if _headrace_if_1.runs_orelse:
        with _headrace_if_1:
            ...  # the other branch
    if _headrace_if_1.is_data:
        _headrace_if_1.join()
        x = _headrace_if_1["x"]  # joined

No function is made of a branch: variables stay those of the user's function, and so do tracebacks,
closures, `nonlocal`, `del`, and what leaves a branch where the condition is plain Python.
"""

from __future__ import annotations

import ast

from headrace.autograph.exits import move_continues, move_returns
from headrace.autograph.expressions import ExpressionRewriter, call, located
from headrace.autograph.places import assigned, root
from headrace.graph.rewritten import HELPER

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def rewrite(function: ast.FunctionDef | ast.Lambda) -> None:
    """Rewrite the body of a function, and the functions that it defines."""
    if isinstance(function, ast.Lambda):
        function.body = ExpressionRewriter(frozenset()).visit(function.body)
    else:
        _FunctionRewriter(function).rewrite()


def is_generator(function: ast.FunctionDef) -> bool:
    """Return True if `function` is a generator, which is left as it is."""
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            pending.extend(ast.iter_child_nodes(node))
    return False


class _FunctionRewriter(ExpressionRewriter):
    def __init__(self, function: ast.FunctionDef, outer: frozenset[str] = frozenset()) -> None:
        self.function = function
        body = move_returns(function.body)
        inner = _conditional_names(body)
        local = {a.arg for a in _arguments(function)} | set(assigned(body))
        super().__init__(inner | (outer - local))
        function.body = body
        self.count = 0
        self.open: list[str] = []
        """The `if` statements that enclose what is rewritten, outermost first."""
        self.assigned: list[tuple[str, ...]] = []
        """The variables that each of them assigns."""
        self.in_loop = 0
        """Number of enclosing loops outside of the innermost loop."""

    def rewrite(self) -> None:
        self.function.body = self._block(self.function.body)

    def _block(self, block: list[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for statement in block:
            result = self.visit(statement)
            found.extend(result if isinstance(result, list) else [result])
        return found

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        self.count += 1
        name = f"{HELPER}_if_{self.count}"
        names = assigned([*node.body, *node.orelse])
        decide = ast.Assign(
            [ast.Name(name, ast.Store())], call("if_", self.visit(node.test), _constant(names))
        )
        result: list[ast.stmt] = [decide]
        self.open.append(name)
        self.assigned.append(names)
        result.append(_when(name, "runs_body", [_within(name, self._block(node.body))]))
        if node.orelse:
            result.append(_when(name, "is_data", _values(name, "next_branch", names)))
            result.append(_when(name, "runs_orelse", [_within(name, self._block(node.orelse))]))
        self.open.pop()
        self.assigned.pop()
        result.append(_when(name, "is_data", _values(name, "join", names)))
        return [located(statement, node) for statement in result]

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        return self._changed(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        return self._changed(node)

    def _changed(self, node: ast.Attribute | ast.Subscript) -> ast.expr:
        """Wrap an item or attribute, so that assignments in a branch are recorded.

        Objects that a branch gets hold of itself are its own.
        """
        text, base, variable = ast.unparse(node.value), node.value, root(node)
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load) or variable is None:
            return node
        blocks = [
            ast.Name(name, ast.Load())
            for name, names in zip(self.open, self.assigned, strict=True)
            if variable not in names
        ]
        if blocks:
            noted = call("changed", node.value, ast.Constant(text), *blocks)
            node.value = located(noted, base)
        return node

    def visit_Return(self, node: ast.Return) -> list[ast.stmt]:
        node = self.generic_visit(node)  # type: ignore[assignment]
        return [*self._refusals("return", self.open, node), node]

    def visit_Break(self, node: ast.Break) -> list[ast.stmt]:
        return [*self._refusals("break", self.open[self.in_loop :], node), node]

    def visit_Continue(self, node: ast.Continue) -> list[ast.stmt]:
        return [*self._refusals("continue", self.open[self.in_loop :], node), node]

    def _refusals(self, what: str, conditionals: list[str], node: ast.stmt) -> list[ast.stmt]:
        """Return statements that raise an error if `node` leaves a branch whose condition is
        data.
        """
        return [
            located(ast.Expr(_method(name, "refuse", _constant(what))), node)
            for name in reversed(conditionals)
        ]

    def visit_For(self, node: ast.For) -> ast.For:
        node.target = self.visit(node.target)
        node.iter = located(call("iterable", self.visit(node.iter)), node.iter)
        self._loop(node)
        return node

    def visit_While(self, node: ast.While) -> ast.While:
        node.test = self.plain(node.test, "`while`")
        self._loop(node)
        return node

    def _loop(self, node: ast.For | ast.While) -> None:
        outside, self.in_loop = self.in_loop, len(self.open)
        node.body = self._block(move_continues(node.body))
        self.in_loop = outside
        node.orelse = self._block(node.orelse)

    def visit_Try(self, node: ast.Try) -> ast.Try:
        # An error that is handled may come from the middle of an expression.
        recover = ast.With([ast.withitem(call("unfinished"))], self._block(node.body))
        node.body = [located(recover, node)]
        for handler in node.handlers:
            if handler.type is not None:
                handler.type = self.visit(handler.type)
            handler.body = self._block(handler.body)
        node.orelse = self._block(node.orelse)
        node.finalbody = self._block(node.finalbody)
        return node

    def visit_TryStar(self, node: ast.TryStar) -> ast.TryStar:
        self.visit_Try(node)  # type: ignore[arg-type] # it has the same fields
        return node

    def visit_With(self, node: ast.With) -> ast.With:
        for item in node.items:
            self.visit(item)
        node.body = self._block(node.body)
        return node

    def visit_Match(self, node: ast.Match) -> ast.Match:
        node.subject = self.visit(node.subject)
        for case in node.cases:
            if case.guard is not None:
                case.guard = self.plain(case.guard, "`case ... if`")
            case.body = self._block(case.body)
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.Assert:
        node.test = self.plain(node.test, "`assert`")
        if node.msg is not None:
            node.msg = self.visit(node.msg)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        checks: list[ast.stmt] = []
        if isinstance(node.target, ast.Name) and node.target.id in self.names:
            name = located(ast.Name(node.target.id, ast.Load()), node)
            checks.append(located(ast.Expr(self.visit_Name(name)), node))
        else:
            node.target = self.visit(node.target)
        node.value = self.visit(node.value)
        return [*checks, node]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        node.target = self.visit(node.target)
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        left_alone = is_generator(node) or any(map(_is_mark, node.decorator_list))
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        node.args.defaults = [self.visit(d) for d in node.args.defaults]
        node.args.kw_defaults = [d and self.visit(d) for d in node.args.kw_defaults]
        if not left_alone:
            _FunctionRewriter(node, self.names).rewrite()
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AsyncFunctionDef:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef):
                self.visit_FunctionDef(statement)
        return node

    def visit_AsyncFor(self, node: ast.AsyncFor) -> ast.AsyncFor:
        return node


def _conditional_names(body: list[ast.stmt]) -> frozenset[str]:
    """The variables that some `if` of a function assigns: those that a branch may leave unset."""
    found: set[str] = set()
    for statement in body:
        if isinstance(statement, ast.If):
            found.update(assigned([statement]))
        elif not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inner = [n for n in ast.iter_child_nodes(statement) if isinstance(n, ast.stmt)]
            for holder in getattr(statement, "handlers", []) + getattr(statement, "cases", []):
                inner += holder.body
            found |= _conditional_names(inner)
    return frozenset(found)


def _arguments(function: ast.FunctionDef) -> list[ast.arg]:
    a = function.args
    return [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]


def _is_mark(decorator: ast.expr) -> bool:
    name = decorator.attr if isinstance(decorator, ast.Attribute) else decorator
    return (name.id if isinstance(name, ast.Name) else name) == "do_not_convert"


def _constant(value: str | tuple[str, ...]) -> ast.expr:
    if isinstance(value, tuple):
        return ast.Tuple([_constant(v) for v in value], ast.Load())
    return ast.Constant(value)


def _method(name: str, method: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(_attribute(name, method), list(arguments), [])


def _attribute(name: str, attribute: str) -> ast.Attribute:
    return ast.Attribute(ast.Name(name, ast.Load()), attribute, ast.Load())


def _when(name: str, condition: str, block: list[ast.stmt]) -> ast.If:
    return ast.If(_attribute(name, condition), block, [])


def _within(name: str, block: list[ast.stmt]) -> ast.With:
    return ast.With([ast.withitem(ast.Name(name, ast.Load()))], block)


def _values(name: str, method: str, variables: tuple[str, ...]) -> list[ast.stmt]:
    """Call `method`, then give each variable the value that it has for it."""
    block: list[ast.stmt] = [ast.Expr(_method(name, method))]
    for variable in variables:
        item = ast.Subscript(ast.Name(name, ast.Load()), ast.Constant(variable), ast.Load())
        block.append(ast.Assign([ast.Name(variable, ast.Store())], item))
    return block
