"""All the small changes that a source file allows, each found by its function and its text."""

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import accumulate
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


# kind, expression, bytes that are replaced, and their replacement
_Change = tuple[str, ast.expr, int, int, str]
_Span = Callable[[ast.expr], tuple[int, int]]


def mutants_of(file: str, source: bytes) -> dict[Mutant, Place]:
    """Return the mutants of a source file, in the order of the source, with their places."""
    lines = [0, *accumulate(map(len, source.splitlines(keepends=True)))]
    seen: Counter[tuple[str, ...]] = Counter()
    found: dict[Mutant, Place] = {}

    def span(node: ast.expr) -> tuple[int, int]:
        last = lines[(node.end_lineno or 0) - 1]
        return lines[node.lineno - 1] + node.col_offset, last + (node.end_col_offset or 0)

    for node, names, around in _nodes(ast.parse(source), (), ()):
        for kind, outer, start, end, new in _changes(node, source, span):
            line = outer.lineno
            for wider in reversed(around):
                text = source[slice(*span(wider))]
                words = any(isinstance(part, ast.JoinedStr) for part in ast.walk(wider))
                first, last = span(outer)
                if last - first >= _SHORT or len(text.decode()) > _LONG or b"\n" in text or words:
                    break
                outer = wider
            first, last = span(outer)
            changed = source[first:start] + new.encode() + source[end:last]
            key = file, ".".join(names), kind, source[first:last].decode(), changed.decode()
            found[Mutant(*key, seen[key])] = Place(line, first, last)
            seen[key] += 1
    return found


def apply(mutant: Mutant, source: bytes) -> bytes:
    """Return the source with the mutant in it; a `KeyError` if the source has no such expression any more."""
    place = mutants_of(mutant.file, source)[mutant]
    return source[: place.start] + mutant.new.encode() + source[place.end :]


def _nodes(
    node: ast.AST, names: tuple[str, ...], around: tuple[ast.expr, ...]
) -> Iterator[tuple[ast.AST, tuple[str, ...], tuple[ast.expr, ...]]]:
    """Yield the nodes of functions that are behaviour, with the names and the expressions around each."""
    inside = isinstance(node, ast.FunctionDef | ast.ClassDef)
    call = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
    # messages and annotations are no behaviour
    if isinstance(node, ast.Raise | ast.JoinedStr) or call.startswith(("warn", "cast")):
        return
    if names and names[-1] != "__repr__" and not inside:
        yield node, names, around
    names = (*names, node.name) if isinstance(node, ast.FunctionDef | ast.ClassDef) else names
    around = (*around, node) if isinstance(node, ast.expr) else ()
    children = node.body if isinstance(node, ast.FunctionDef | ast.ClassDef) else ast.iter_child_nodes(node)
    for below in children:
        if below is not getattr(node, "annotation", None):
            yield from _nodes(below, names, around)


def _changes(node: ast.AST, source: bytes, span: _Span) -> Iterator[_Change]:
    """Yield the changes of one node, without those of the nodes below it."""

    def operator(kind: str, left: ast.expr, operator: ast.AST, right: ast.expr) -> Iterator[_Change]:
        if type(operator) in _OPERATORS:
            old, new = _OPERATORS[type(operator)]
            # between the two sides there may be brackets, too
            pattern = re.compile(rb"[)\s]*(%b)" % re.escape(old.encode()))
            place = pattern.search(source, span(left)[1], span(right)[0])
            assert place is not None
            assert isinstance(node, ast.expr)
            yield kind, node, *place.span(1), new

    match node:
        case ast.Compare():
            for left, sign, right in zip(
                [node.left, *node.comparators], node.ops, node.comparators, strict=False
            ):
                yield from operator("comparison", left, sign, right)
        case ast.BoolOp():
            for left, right in zip(node.values, node.values[1:], strict=False):
                yield from operator("and, or", left, node.op, right)
        case ast.BinOp():
            # texts and lists that are joined are no arithmetic
            joined = ast.JoinedStr, ast.List, ast.ListComp, ast.Tuple
            sides = node.left, node.right
            if not any(isinstance(side, joined) or _is_text(side) for side in sides):
                yield from operator("arithmetic", node.left, node.op, node.right)
        case ast.Constant(value=bool(value)):
            yield "True, False", node, *span(node), str(not value)
        case ast.Constant(value=int(value)):
            yield "integer", node, *span(node), str(value + 1)
        case ast.Constant(value=float(value)) if value in (0.0, 1.0):
            yield "0.0, 1.0", node, *span(node), str(1.0 - value)
        case ast.UnaryOp(op=ast.Not()):
            yield "not", node, *span(node), f"({source[slice(*span(node.operand))].decode()})"
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in _CALLS:
            end = span(node.func)[1]
            yield "min, max, sum, any, all", node, end - len(name), end, _CALLS[name]
        case ast.If() | ast.IfExp() if not isinstance(node.test, ast.Constant):
            for answer in ("True", "False"):
                yield "guard", node.test, *span(node.test), answer


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
