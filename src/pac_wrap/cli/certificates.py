"""Files of certificates, of kinds, of groups and of curves: what one may hold, and writing one."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import typer

from pac_wrap.cli.options import NOT_CERTIFIED
from pac_wrap.cli.process import say
from pac_wrap.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pac_wrap.method.certificates.certificate import Certificate
    from pac_wrap.method.curves.curve import Curve
    from pac_wrap.method.groups.certificate import GroupCertificate
    from pac_wrap.method.kinds.certificate import KindCertificate
    from pac_wrap.method.kinds.classes import ClassCertificate
    from pac_wrap.report.account import Fact
    from pac_wrap.report.sentences import Origin

# the format stands in the first line of a file
_START = 200


def any_of(path: Path) -> "Certificate | KindCertificate | GroupCertificate | Curve":
    """Return what a file holds; what is none of them is refused as a certificate."""
    with path.open("rb") as file:
        return _any_of(file.read(_START), file)


def _any_of(start: bytes, file: BinaryIO) -> "Certificate | KindCertificate | GroupCertificate | Curve":
    """Return what an open file holds, whose start has been read: a pipe has it once."""
    from pac_wrap.base.codec import MOST_BYTES
    from pac_wrap.method.certificates.certificate import Certificate
    from pac_wrap.method.curves.curve import FORMAT, Curve
    from pac_wrap.method.kinds.certificate import FORMAT as OF_KINDS
    from pac_wrap.method.kinds.certificate import KindCertificate

    if b'"pac-wrap groups"' in start:
        from pac_wrap.method.groups.certificate import GroupCertificate
        from pac_wrap.method.groups.file import MOST_BYTES as MOST_OF_GROUPS

        return GroupCertificate.from_json(start + file.read(MOST_OF_GROUPS + 1 - len(start)))
    text = start + file.read(MOST_BYTES + 1 - len(start))
    if OF_KINDS.encode() in start:
        return KindCertificate.from_json(text)
    return Curve.from_json(text) if FORMAT.encode() in start else Certificate.from_json(text)


def shown_of(path: Path) -> "Certificate | KindCertificate | ClassCertificate | GroupCertificate | Curve":
    """Return what a file holds that can be shown, which includes a certificate of classes."""
    from pac_wrap.base.codec import MOST_BYTES
    from pac_wrap.method.kinds.classes import FORMAT, ClassCertificate

    with path.open("rb") as file:
        start = file.read(_START)
        if FORMAT.encode() in start:
            return ClassCertificate.from_json(start + file.read(MOST_BYTES + 1 - len(start)))
        return _any_of(start, file)


def columns_of(loaded: object, score: str, kind: str | None, group: str | None = None) -> list[str]:
    """Return the columns of scores, and of kinds or groups, that a certificate needs."""
    from pac_wrap.method.groups.certificate import GroupCertificate
    from pac_wrap.method.kinds.certificate import KindCertificate

    for given, of, option, noun in (
        (kind, KindCertificate, "--kind", "kind"),
        (group, GroupCertificate, "--group", "group"),
    ):
        if isinstance(loaded, of) is (given is None):
            raise InputError(
                f"the certificate promises by {noun}; name the column of {noun}s with {option}"
                if given is None
                else f"{option} is for certificates that were made with it; leave it out"
            )
    return [score, *(column for column in (kind, group) if column is not None)]


def deciding(path: Path, group: str | None = None) -> "Certificate | GroupCertificate":
    """Return the certificate whose rule decides; of a certificate of kinds, that of those that bind."""
    from pac_wrap.method.certificates.certificate import Certificate
    from pac_wrap.method.groups.certificate import GroupCertificate
    from pac_wrap.method.kinds.certificate import KindCertificate

    loaded = any_of(path)
    if isinstance(loaded, KindCertificate):
        loaded = loaded.binding
    columns_of(loaded, "", None, group)
    return loaded if isinstance(loaded, (Certificate, GroupCertificate)) else Certificate.load(path)


def of_classes(path: Path) -> "Certificate":
    """Return a certificate that speaks of both classes as wholes; one of parts of them is refused."""
    from pac_wrap.method.certificates.certificate import Certificate
    from pac_wrap.method.groups.certificate import GroupCertificate
    from pac_wrap.method.kinds.certificate import KindCertificate

    loaded = any_of(path)
    for of, noun in ((KindCertificate, "kind"), (GroupCertificate, "group")):
        if isinstance(loaded, of):
            raise InputError(
                f"the certificate promises by {noun}, and the worth of alarms depends on the mix of {noun}s;"
                f" give one that was made without --{noun}"
            )
    return loaded if isinstance(loaded, Certificate) else Certificate.load(path)


def write_certified(
    certificate: "Certificate",
    classes: "Sequence[NDArray[Any]] | None",
    origin: "Origin",
    output: Path | None,
    report: Path | None,
    shares: tuple[float, float] | None,
    in_time: "tuple[Fact, ...]" = (),
    *,
    quiet: bool,
) -> None:
    """Write a certificate and the report of it and the scores of both classes, all or none, and say so."""
    from pac_wrap.base.arguments import as_scores
    from pac_wrap.base.files import whole_file
    from pac_wrap.report.account import account_of
    from pac_wrap.report.render import put, rendered

    texts: dict[Path, str | bytes] = {} if output is None else {output: certificate.to_json()}
    if report is not None and classes is not None:
        normal, anomalous = map(as_scores, classes)
        known: Any = {"source": origin, "prevalence": shares, "in_time": in_time}
        texts[report] = rendered(account_of(certificate, normal, anomalous, **known), report)
    with ExitStack() as files:
        for path, text in texts.items():
            put(files.enter_context(whole_file(path)), text)
    if not quiet:
        tell_written(certificate.normal.n, certificate.anomalous.n, texts)


def end_with(
    certified: "Certificate | KindCertificate | GroupCertificate",
    form: str,
    more: "Iterable[Fact]" = (),
) -> None:
    """Show what was certified, as text or as it is saved; the command ends with 1 if that lacks a rate."""
    if form == "json":
        typer.echo(certified.to_json(), nl=False)
    else:
        # whoever made a certificate knows where it comes from
        typer.echo(str(getattr(certified, "bare", certified)))
        for fact in more:
            typer.echo(f"{fact.name:<10} {fact.text}")
    if certified.empty or bool(getattr(certified, "overstated", False)):
        raise typer.Exit(NOT_CERTIFIED)


def tell_written(normal: int, anomalous: int, paths: Iterable[Path], more: str = "") -> None:
    """Say what calibrated, and where the certificate of it is, if it was written."""
    if listed := ", ".join(map(str, paths)):
        counts = f"{normal + anomalous:,} rows: {normal:,} normal, {anomalous:,} anomalous{more}"
        say(f"{counts} -> {listed}")
