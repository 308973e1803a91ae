"""What shows at a glance, in microseconds, that a detector may have been changed since it was last asked.

Training an estimator replaces its attributes, training a torch module counts up the versions of its tensors,
and a function may find other globals. No trace is proof of a change, or of none: it says when to look again.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from types import FunctionType, MethodType
from typing import Any, Final, Self

_INNER: Final = ("estimator", "best_estimator_", "func", "__self__")
_MOST_OBJECTS: Final = 16  # a function may reach many others; a glance must stay one


@dataclass(frozen=True)
class Trace:
    """Which objects stand under some names of a namespace; by identity, so that none is kept alive."""

    namespace: dict[str, Any]
    names: tuple[str, ...]
    ids: list[int]

    @classmethod
    def of(cls, namespace: dict[str, Any], names: tuple[str, ...]) -> Self:
        """Return what stands under the names now."""
        return cls(namespace, names, [id(namespace.get(name)) for name in names])

    def unchanged(self) -> bool:
        """Return whether the same objects still stand there."""
        namespace = self.namespace
        return self.ids == [id(namespace.get(name)) for name in self.names]

    def kept(self) -> Self:
        """Return the trace of what has not changed yet."""
        pairs = zip(self.names, self.ids, strict=True)
        same = tuple(name for name, old in pairs if id(self.namespace.get(name)) == old)
        return self.of(self.namespace, same)


@dataclass(frozen=True)
class Traces:
    """All traces of a detector: what it and those it asks hold, and the versions of its tensors."""

    detector: Any
    traces: tuple[Trace, ...]
    tensors: tuple[Any, ...]
    versions: list[int]

    @classmethod
    def of(cls, detector: Any) -> Self:
        """Return the traces of a detector as it is now."""
        objects = tuple(_asked_by(detector))
        tensors = tuple(tensor for one in objects for tensor in _tensors(one))
        traces = tuple(Trace.of(*looked_up) for one in objects for looked_up in _namespaces(one))
        return cls(detector, traces, tensors, [tensor._version for tensor in tensors])

    def kept(self) -> Self:
        """Return them without what has changed already: what scoring changes is no sign of training."""
        traces = tuple(trace.kept() for trace in self.traces)
        return type(self)(self.detector, traces, self.tensors, [tensor._version for tensor in self.tensors])

    def unchanged(self, detector: Any) -> bool:
        """Return whether it is the same detector, and shows no trace of a change."""
        return (
            detector is self.detector
            and all(trace.unchanged() for trace in self.traces)
            and self.versions == [tensor._version for tensor in self.tensors]
        )


def _asked_by(detector: Any) -> Iterator[Any]:
    """Yield a detector and what it asks in turn: steps, wrapped estimators, models that a function uses."""
    seen: set[int] = set()
    waiting = [detector]
    while waiting and len(seen) < _MOST_OBJECTS:
        one = waiting.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        if isinstance(one, FunctionType):
            waiting.extend(value for value in _used_by(one) if _may_score(value))
        elif isinstance(one, (MethodType, partial)) or hasattr(one, "fit"):
            waiting.extend(getattr(one, name) for name in _INNER if hasattr(one, name))
            waiting.extend(step for _, step in getattr(one, "steps", ()))


def _used_by(function: FunctionType) -> Iterator[Any]:
    yield from (function.__globals__.get(name) for name in function.__code__.co_names)
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # nothing is bound to it yet
            continue


def _may_score(value: Any) -> bool:
    function = isinstance(value, (FunctionType, MethodType, partial))
    return function or (not isinstance(value, type) and (hasattr(value, "fit") or _is_module(value)))


def _is_module(one: Any) -> bool:
    return hasattr(one, "parameters") and hasattr(one, "buffers")


def _tensors(one: Any) -> Iterator[Any]:
    if _is_module(one):
        yield from one.parameters()
        yield from one.buffers()


def _namespaces(one: Any) -> Iterator[tuple[dict[str, Any], tuple[str, ...]]]:
    """Yield where an object looks things up, and the names of them."""
    attributes = getattr(one, "__dict__", {})
    if attributes:
        yield attributes, tuple(attributes)
    if isinstance(one, FunctionType):
        yield one.__globals__, one.__code__.co_names
