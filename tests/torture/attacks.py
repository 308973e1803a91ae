"""All attacks, in the order of the page."""

from typing import Final

from torture import files, labelled
from torture.arguments import wrong_argument
from torture.commands import wrong_command
from torture.processes import early_reader, full_disk, signalled
from torture.record import Attack
from torture.traffic import reviewed_traffic

ATTACKS: Final = (
    Attack("CSV in DuckDB", "generated files, beside Python's csv", files.csv_in_duckdb),
    Attack("CSV in a stream", "the same, cut into pieces", files.csv_in_a_stream, 0.5),
    Attack("CSV decided", "generated files and streams, every cell kept", files.csv_decided, 0.5),
    Attack("CSV in Dask", "generated files, beside Python's csv", files.csv_in_dask, 0.7),
    Attack("CSV in Spark", "generated files, beside Python's csv, many in a job", files.csv_in_spark, 1.5),
    Attack("formats", "ties, calibrated in one format and decided in another", files.other_format),
    Attack("tampered certificates", "values changed, checksum made right again", files.tampered),
    Attack("groups", "generated groups from memory, files and Dask; tampered files", labelled.groups),
    Attack("kinds", "the same with kinds", labelled.kinds),
    Attack("curves", "generated scores from memory, chunks, files and Dask; tampered files", labelled.curves),
    Attack("monitors", "streams that are interrupted and resumed; tampered states", labelled.monitors),
    Attack(
        "labels as they come",
        "one by one and in batches, late, contradictory, repeated and malformed",
        labelled.labels_as_they_come,
    ),
    Attack(
        "reviewed traffic",
        "from memory, files and Dask; answers that contradict each other; tampered files",
        reviewed_traffic,
    ),
    Attack("wrong arguments", "one or two arguments of a public function replaced", wrong_argument),
    Attack("wrong command lines", "words replaced, dropped or added, with bad files", wrong_command),
    Attack("readers that leave", "pipes closed after some bytes, closed streams", early_reader),
    Attack("signals", "SIGTERM, SIGHUP, SIGINT, SIGKILL in calibrate and decide", signalled, 1.5),
    Attack("full disks", "a write that the system cuts short", full_disk),
)
