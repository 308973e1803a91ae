"""The data sets by name: their files with hashes and sizes, their shapes, sources and terms."""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class Table:
    """One table of ADBench's folder Classical."""

    file: str
    rows: int
    columns: int
    anomalies: int
    size: int
    sha256: str


def _lines(name: str) -> list[list[str]]:
    """Return the lines of a table of facts, without its heads."""
    with open(Path(__file__).with_name(name), encoding="utf-8", newline="") as text:
        return list(csv.reader(text))[1:]


def _tables() -> Iterator[tuple[str, Table]]:
    # no copy of 3_backdoor, 9_census, 13_fraud and 36_speech was at hand
    for file, rows, columns, anomalies, size, sha256 in _lines("adbench.csv"):
        name = file.partition("_")[2].removesuffix(".npz")
        yield name, Table(file, int(rows), int(columns), int(anomalies), int(size), sha256)


TABLES: Final = dict(_tables())
# bytes and hashes of the other files
_FILES: Final = {name: (size, sha256) for name, size, sha256 in _lines("files.csv")}


@dataclass(frozen=True)
class RemoteFile:
    """A file of a public data set, and the hash without which it is not used; `name` may lead into a folder.

    `published` says where the hash is public. Where it is None no public hash is known, and `sha256` is that
    of the copy the results were made with. `original` says how the archive at `url` differs from this file,
    if it does: it would be refused for its hash, so it is not downloaded.
    """

    name: str
    url: str
    sha256: str
    size: int
    published: str | None = None
    original: str = ""

    @property
    def absence(self) -> str:
        """The sentence that says why a file that differs from its original cannot be downloaded."""
        return (
            f"{self.name} is not on this machine and cannot be downloaded, because {self.url}"
            f" {self.original}; put a copy of {self.name} into a folder and set PAC_WRAP_DATA to that folder"
        )


@dataclass(frozen=True)
class SeriesList:
    """The series or tables of a data set that are loaded one at a time; `count` of `total` can be loaded.

    >>> str(SeriesList("channels", 81, 82, ("P-1", "S-1"), "T-10 has no labels"))
    '81 of 82 channels; T-10 has no labels'
    """

    kind: str
    count: int
    total: int
    examples: tuple[str, ...]
    note: str

    def __str__(self) -> str:
        return f"{self.count} of {self.total} {self.kind}; {self.note}"


@dataclass(frozen=True)
class Entry:
    """The facts of one data set: its files, its shape as `load` returns it by default, its terms.

    If it consists of several series or tables, rows and anomalies are those of all that can be loaded, and
    columns those of the widest.
    """

    files: tuple[RemoteFile, ...]
    rows: int
    columns: int
    anomalies: int
    source: str
    licence: str
    citation: str
    series: SeriesList | None = None

    @property
    def size(self) -> int:
        """The bytes of all files together."""
        return sum(file.size for file in self.files)


_ADREPOSITORY: Final = (
    "https://raw.githubusercontent.com/GuansongPang/ADRepository-Anomaly-detection-datasets/"
    "875e2afa52250db6dc1c716d7fbbaf7f2db45c76/numerical%20data/DevNet%20datasets/"
)
_UCI: Final = "https://archive.ics.uci.edu/ml/machine-learning-databases/census-income-mld/"
_ESL: Final = "https://hastie.su.domains/ElemStatLearn/datasets/"
_ADBENCH: Final = (
    "https://raw.githubusercontent.com/Minqi824/ADBench/3dac8221081e190f157d78e93bfa8867f90d0965/"
    "adbench/datasets/Classical/"
)
_MNIST: Final = "https://ossci-datasets.s3.amazonaws.com/mnist/"

# no other folder's hashes were found in public; those are the hashes of the copies we used
_PUBLISHED: Final = {_MNIST: "pytorch/vision, torchvision/prototype/datasets/_builtin/mnist.py"}


def _files(folder: str, *names: str) -> tuple[RemoteFile, ...]:
    return tuple(file for name in names for file in _archive(name, folder + name, ""))


def _archive(name: str, url: str, original: str) -> tuple[RemoteFile]:
    size, sha256 = _FILES[name]
    published = _PUBLISHED.get(url.removesuffix(name))
    return (RemoteFile(name, url, sha256, int(size), published, original),)


_ENTRIES = {
    "thyroid": Entry(
        _files(_ADREPOSITORY, "annthyroid_21feat_normalised.csv"),
        *(7_200, 21, 534),
        source="https://archive.ics.uci.edu/dataset/102/thyroid+disease",
        licence="CC BY 4.0",
        citation="Quinlan, Thyroid Disease, UCI Machine Learning Repository, 1986, doi:10.24432/C5D010;"
        " scaled by Pang, Shen and van den Hengel, KDD 2019",
    ),
    "campaign": Entry(
        _files(_ADREPOSITORY, "bank-additional-full_normalised.csv"),
        *(41_188, 62, 4_640),
        source="https://archive.ics.uci.edu/dataset/222/bank+marketing",
        licence="CC BY 4.0",
        citation="Moro, Rita and Cortez, Bank Marketing, UCI Machine Learning Repository, 2014,"
        " doi:10.24432/C5K306; scaled by Pang, Shen and van den Hengel, KDD 2019",
    ),
    "celeba": Entry(
        _files(_ADREPOSITORY, "celeba_baldvsnonbald_normalised.csv"),
        *(202_599, 39, 4_547),
        source="http://mmlab.ie.cuhk.edu.hk/projects/CelebA.html",
        licence="non-commercial research only",
        citation="Liu, Luo, Wang and Tang, Deep learning face attributes in the wild, ICCV 2015;"
        " made a table by Pang, Shen and van den Hengel, KDD 2019",
    ),
    "census": Entry(
        _files(_UCI, "census-income.data.gz", "census-income.test.gz"),
        *(299_285, 500, 18_568),
        source="https://archive.ics.uci.edu/dataset/117/census+income+kdd",
        licence="CC BY 4.0",
        citation="Census-Income (KDD), donated by Lane and Kohavi, UCI Machine Learning Repository, 2000,"
        " doi:10.24432/C5N30T",
    ),
    "usps": Entry(
        _files(_ESL, "zip.train.gz", "zip.test.gz"),
        *(3_916, 256, 708),
        source="https://hastie.su.domains/ElemStatLearn/data.html",
        licence="not stated",
        citation="Le Cun et al., 1990; from the site of Hastie, Tibshirani and Friedman, The Elements of"
        " Statistical Learning",
    ),
    "mnist": Entry(
        _files(
            _MNIST,
            "train-images-idx3-ubyte.gz",
            "train-labels-idx1-ubyte.gz",
            "t10k-images-idx3-ubyte.gz",
            "t10k-labels-idx1-ubyte.gz",
        ),
        *(27_562, 784, 6_825),
        source="http://yann.lecun.com/exdb/mnist/",
        licence="CC BY-SA 3.0",
        citation="LeCun, Bottou, Bengio and Haffner, Gradient-based learning applied to document recognition,"
        " Proceedings of the IEEE, 1998",
    ),
    "nasa": Entry(
        _archive(
            "nasa-telemanom.zip",
            "https://s3-us-west-2.amazonaws.com/telemanom/data.zip",
            "is a larger archive, with models and predictions, and its labels are kept apart from it",
        ),
        *(705_876, 55, 63_738),
        source="https://github.com/khundman/telemanom",
        # LICENSE.txt of the repository is BSD-3-Clause, its README says Apache 2.0; neither names the data
        licence="not stated",
        citation="Hundman, Constantinou, Laporte, Colwell and Soderstrom, Detecting spacecraft anomalies"
        " using LSTMs and nonparametric dynamic thresholding, KDD 2018, doi:10.1145/3219819.3219845",
        series=SeriesList("channels", 81, 82, ("P-1", "S-1", "E-1"), "T-10 has no labels; 25 or 55 columns"),
    ),
    "smd": Entry(
        _archive(
            "smd-omnianomaly.zip",
            "https://github.com/NetManAIOps/OmniAnomaly/archive/refs/heads/master.zip",
            "is an archive of the whole repository, with code and the series of all 28 machines",
        ),
        *(900_451, 38, 20_763),
        source="https://github.com/NetManAIOps/OmniAnomaly",
        # ServerMachineDataset/LICENSE, in the archive
        licence="MIT",
        citation="Su, Zhao, Niu, Liu, Sun and Pei, Robust anomaly detection for multivariate time series"
        " through stochastic recurrent neural network, KDD 2019, doi:10.1145/3292500.3330672",
        series=SeriesList(
            "machines", 19, 28, ("machine-1-2", "machine-1-3", "machine-1-4"), "the others have labels only"
        ),
    ),
    "adbench": Entry(
        tuple(
            RemoteFile(f"adbench/{table.file}", _ADBENCH + table.file, table.sha256, table.size)
            for table in TABLES.values()
        ),
        rows=sum(table.rows for table in TABLES.values()),
        columns=max(table.columns for table in TABLES.values()),
        anomalies=sum(table.anomalies for table in TABLES.values()),
        source="https://github.com/Minqi824/ADBench",
        # the repository's licence; its paper lists where each table comes from
        licence="BSD 2-Clause; each table its own",
        citation="Han, Hu, Huang, Jiang and Zhao, ADBench: Anomaly Detection Benchmark, NeurIPS 2022"
        " (datasets and benchmarks)",
        series=SeriesList(
            *("tables", len(TABLES), 47, ("ALOI", "annthyroid", "breastw")),
            "backdoor, census, fraud and speech are left out",
        ),
    ),
}
ENTRIES: Final[Mapping[str, Entry]] = MappingProxyType(_ENTRIES)
