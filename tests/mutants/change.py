"""All the small changes that a source file allows, each found by its function and its text."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

FOLDERS: Final = "method", "ranks", "tables", "streams"
_OPERATORS: Final[dict[type[ast.AST], tuple[str, str]]] = {
    **{ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">")},
    **{ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.And: ("and", "or"), ast.Or: ("or", "and")},
    **{ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*")},
}
_CALLS: Final = {
    **{"min": "max", "max": "min", "any": "all", "all": "any", "sum": "max"},
    **{"minimum": "maximum", "maximum": "minimum"},
}
# the text of a mutant is widened to the next expression around it up to here, so that a reader can place it
_SHORT: Final = 16
_LONG: Final = 100


class Mutant(NamedTuple):
    """A change of one expression: `old` of `function` becomes `new`."""

    file: str
    function: str
    kind: str
    old: str
    new: str
    # among equal ones in the function, from 0
    number: int


class Place(NamedTuple):
    """Where a mutant's expression is: its line, and its bytes in the file."""

    line: int
    start: int
    end: int


class _Finder:
    def __init__(self, file: str, source: bytes) -> None:
        self.file, self.source = file, source
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.seen: Counter[tuple[str, ...]] = Counter()
        self.found: dict[Mutant, Place] = {}

    def span(self, node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        first, last = self.starts[node.lineno - 1], self.starts[node.end_lineno - 1]
        return first + node.col_offset, last + node.end_col_offset

    def text(self, node: ast.expr) -> str:
        start, end = self.span(node)
        return self.source[start:end].decode()

    def visit(self, node: ast.AST, names: tuple[str, ...], around: tuple[ast.expr, ...]) -> None:
        """Collect the mutants of a node and of all below it, in the order of the source."""
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            for statement in node.body:
                self.visit(statement, (*names, node.name), ())
            return
        # messages and annotations are no behaviour
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom):
            return
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith(("warn", "cast")):
            return
        if names and names[-1] != "__repr__":
            for kind, part, start, end, new in self.changes(node):
                self.add(kind, names, part, start, end, new, around)
        inner = (*around, node) if isinstance(node, ast.expr) else ()
        for name, value in ast.iter_fields(node):
            if name not in ("annotation", "returns", "decorator_list"):
                for below in value if isinstance(value, list) else [value]:
                    if isinstance(below, ast.AST):
                        self.visit(below, names, inner)

    def add(
        self,
        kind: str,
        names: tuple[str, ...],
        part: ast.expr,
        start: int,
        end: int,
        new: str,
        around: tuple[ast.expr, ...],
    ) -> None:
        outer = part
        for wider in reversed(around):
            text = self.text(wider)
            words = any(isinstance(n, ast.JoinedStr) for n in ast.walk(wider))
            if len(self.text(outer)) >= _SHORT or len(text) > _LONG or "\n" in text or words:
                break
            outer = wider
        first, last = self.span(outer)
        changed = (self.source[first:start] + new.encode() + self.source[end:last]).decode()
        key = (self.file, ".".join(names), kind, self.text(outer), changed)
        self.found[Mutant(*key, self.seen[key])] = Place(part.lineno, first, last)
        self.seen[key] += 1

    def changes(self, node: ast.AST) -> Iterator[tuple[str, ast.expr, int, int, str]]:
        """Yield kind, expression, bytes that are replaced, and their replacement, for one node."""
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for left, operator, right in zip(sides, node.ops, sides[1:], strict=False):
                yield from self.operator("comparison", node, left, operator, right)
        elif isinstance(node, ast.BoolOp):
            for left, right in zip(node.values, node.values[1:], strict=False):
                yield from self.operator("and, or", node, left, node.op, right)
        elif isinstance(node, ast.BinOp):
            # texts and lists that are joined are no arithmetic
            joined = ast.JoinedStr, ast.List, ast.ListComp, ast.Tuple
            if not any(isinstance(side, joined) or _is_text(side) for side in (node.left, node.right)):
                yield from self.operator("arithmetic", node, node.left, node.op, node.right)
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float, bool):
            start, end = self.span(node)
            if isinstance(node.value, bool):
                yield "True, False", node, start, end, str(not node.value)
            elif isinstance(node.value, int):
                yield "integer", node, start, end, str(node.value + 1)
            elif node.value in (0.0, 1.0):
                yield "0.0, 1.0", node, start, end, "1.0" if node.value == 0 else "0.0"
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield "not", node, *self.span(node), f"({self.text(node.operand)})"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            if name in _CALLS:
                end = self.span(node.func)[1]
                yield "min, max, sum, any, all", node, end - len(name), end, _CALLS[name]
        elif isinstance(node, ast.If | ast.IfExp) and not isinstance(node.test, ast.Constant):
            for answer in ("True", "False"):
                yield "guard", node.test, *self.span(node.test), answer

    def operator(
        self, kind: str, node: ast.expr, left: ast.expr, operator: ast.AST, right: ast.expr
    ) -> Iterator[tuple[str, ast.expr, int, int, str]]:
        if type(operator) in _OPERATORS:
            old, new = _OPERATORS[type(operator)]
            start, end = self.span(left)[1], self.span(right)[0]
            # between the two sides there may be brackets, too
            place = re.search(rb"[)\s]*(%b)" % re.escape(old.encode()), self.source[start:end])
            assert place is not None
            yield kind, node, start + place.start(1), start + place.end(1), new


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def mutants_of(file: str, source: bytes) -> dict[Mutant, Place]:
    """Return the mutants of a source file, in the order of the source, with their places."""
    finder = _Finder(file, source)
    finder.visit(ast.parse(source), (), ())
    return finder.found


def apply(mutant: Mutant, source: bytes) -> bytes:
    """Return the source with the mutant in it; a `KeyError` if the source has no such expression any more."""
    place = mutants_of(mutant.file, source)[mutant]
    return source[: place.start] + mutant.new.encode() + source[place.end :]
