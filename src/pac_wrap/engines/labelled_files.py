"""Certificates of files that an engine's own readers read: what `--engine` does."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from pac_wrap.base.arguments import label_text
from pac_wrap.engines.files import InspectedFiles
from pac_wrap.engines.kinds import KindsAsked
from pac_wrap.method.chunked import Asked, T
from pac_wrap.method.groups.calibrate import GroupRequest
from pac_wrap.method.groups.certificate import GroupCertificate
from pac_wrap.method.kinds.certificate import KindCertificate
from pac_wrap.method.kinds.part import points_of
from pac_wrap.tables.columns import refuse_as_third


@dataclass(frozen=True, slots=True)
class EngineFiles:
    """Some files, and who reads them: each method gives the certificate that the scores get in memory.

    Spark: the session that runs is used, else one is started with the master and stopped at the end. Dask:
    threads of this process read, or the workers of the scheduler at the address `master`; CSV and JSON are
    parsed once, and 9 bytes a row stay in memory. Workers must find the files under the same names.
    """

    engine: str
    files: Sequence[Path]
    reader: str
    delimiter: str | None = None
    master: str | None = None

    def calibrate(self, request: Asked[T], *, score: str = "score", label: str = "label") -> T:
        """Return what a request gets from two columns."""
        with self._opened((score, label), request.label_text) as (engine, frame, found):
            made: T = engine.certified(frame, request.with_usual_labels(), score="score", label="label")
            found.expect(made.normal.n + made.anomalous.n)
        return made.with_provenance(**self._origin(score))

    def calibrate_groups(
        self, request: GroupRequest, *, score: str, label: str, group: str
    ) -> GroupCertificate:
        """Return what a request gets from the groups in three columns."""
        refuse_as_third(group, (score, label))
        with self._opened((score, label, group), request.request.label_text) as (engine, frame, found):
            usual = replace(request, request=request.request.with_usual_labels())
            columns = {"score": "score", "label": "label", "group": "group"}
            made: GroupCertificate = engine.certified_by_group(frame, usual, **columns)
            found.expect(int(made.columns.n.sum()))
        return made.with_provenance(**self._origin(score))

    def calibrate_kinds(self, asked: KindsAsked, *, score: str, label: str) -> KindCertificate:
        """Return what is asked for of the kinds in three columns."""
        refuse_as_third(asked.column, (score, label), "kind")
        columns = (score, label, asked.column)
        with self._opened(columns, label_text(asked.anomaly_label)) as (engine, frame, found):
            usual = replace(asked, anomaly_label=1)
            made: KindCertificate = engine.certified_by_kind(
                frame, usual, score="score", label="label", kind="group"
            )
            found.expect(points_of(made.normal) + points_of(made.anomalous))
        return made.with_provenance(**self._origin(score))

    @contextmanager
    def _opened(
        self, columns: tuple[str, ...], text: str | None
    ) -> Iterator[tuple[Any, Any, InspectedFiles]]:
        """Yield the module of the engine, a frame of scores, marks and perhaps groups, and what is known."""
        reading: Any = import_module(f"pac_wrap.engines.{self.engine}_files")
        with reading.opened(self.files, self.reader, columns, text, self.delimiter, self.master) as opened:
            yield import_module(f"pac_wrap.engines.{self.engine}"), *opened

    def _origin(self, score: str) -> dict[str, Any]:
        return {"score": score, "tables": tuple(map(str, self.files)), "engine": self.engine}
