"""Places that a block of statements assigns to."""

from __future__ import annotations

import ast

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def assigned(block: list[ast.stmt]) -> tuple[str, ...]:
    """The variables that the statements of `block`, and of blocks within, may assign or delete."""
    finder = _Finder()
    for statement in block:
        finder.visit(statement)
    return tuple(finder.names)


def root(node: ast.expr) -> str | None:
    """The variable that an item or attribute belongs to, however deep; `None` if it is none."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


class _Finder(ast.NodeVisitor):
    def __init__(self) -> None:
        self.names: dict[str, None] = {}
        self.in_comprehension = 0

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load) and not self.in_comprehension:
            self.names[node.id] = None

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.names[node.target.id] = None
        self.visit(node.value)

    def visit_alias(self, node: ast.alias) -> None:
        self.names[(node.asname or node.name).split(".")[0]] = None

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.names[node.name] = None
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        if node.name:
            self.names[node.name] = None
        self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        if node.name:
            self.names[node.name] = None

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self.names[node.rest] = None
        self.generic_visit(node)

    def _scope(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self.names[node.name] = None
        for decorator in node.decorator_list:
            self.visit(decorator)

    visit_FunctionDef = _scope
    visit_AsyncFunctionDef = _scope
    visit_ClassDef = _scope

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """Skip the body: assignments in a lambda are its own."""

    def _comprehension(self, node: ast.AST) -> None:
        self.in_comprehension += 1
        self.generic_visit(node)
        self.in_comprehension -= 1

    visit_ListComp = _comprehension
    visit_SetComp = _comprehension
    visit_DictComp = _comprehension
    visit_GeneratorExp = _comprehension


def contains(block: list[ast.stmt], kind: type[ast.stmt]) -> bool:
    """Return True if `block` or a nested block has a statement of `kind`.

    Functions and classes defined in the block are skipped, and so is the `continue` of its loops.
    """
    outside: tuple[type[ast.stmt], ...] = _SCOPES
    if kind is ast.Continue:
        outside = (*outside, ast.For, ast.While, ast.AsyncFor)
    for statement in block:
        if isinstance(statement, kind):
            return True
        if isinstance(statement, outside):
            continue
        inner = [n for n in ast.iter_child_nodes(statement) if isinstance(n, ast.stmt)]
        handlers = getattr(statement, "handlers", []) + getattr(statement, "cases", [])
        for handler in handlers:
            inner += handler.body
        if contains(inner, kind):
            return True
    return False
