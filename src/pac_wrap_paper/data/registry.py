"""The data sets by name: their files with hashes and sizes, their shapes, sources and terms."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class Table:
    """One table of ADBench's folder Classical.

    >>> TABLES["cardio"].file, TABLES["cardio"].anomalies
    ('6_cardio.npz', 176)
    """

    file: str
    rows: int
    columns: int
    anomalies: int
    size: int
    sha256: str


# file, rows, columns, anomalies, bytes, sha256
# no copy of 3_backdoor, 9_census, 13_fraud and 36_speech was at hand
_FACTS: Final = """
1_ALOI.npz 49534 27 1508 2904730 792d0b5bd1147bfc9574a1974f157b39fbd4cbed8ecd04cf983fd554498ed477
2_annthyroid.npz 7200 6 534 66547 e738f7c58a8740d2c4aac4c71ff49ce5e1d1aa16f44178135fc9c09df05fad1b
4_breastw.npz 683 9 239 3023 4f37ce07dbc25ddad8178fdc6d664ab46d2d0000ee28c2787c3c7ff3c03ef9f6
5_campaign.npz 41188 62 4640 728999 74dd4d0072d6c6f1aabab63bc102f9633454f32bb936fa9bcfbd38f9f2386bcd
6_cardio.npz 1831 21 176 68471 bc5009bde6930b4d298b594f31b34485a9a17210cff0e8fb00a8c3068b885a2d
7_Cardiotocography.npz 2114 21 466 37911 5ae84910430f05923e11b6f537243263977c9136949dabd891e3570aeec51e29
8_celeba.npz 202599 39 4547 1700937 1cadfdea14cd8d240eca715a70c09c88af8621d086a7478c63f602d97adef0b5
10_cover.npz 286048 10 2747 2537258 945a097c3542ae81a551bf1c06dcad78a755d94f84fcaf1d60687e42d1a656df
11_donors.npz 619326 10 36710 2938691 5824ec854465f2763b4bfe3da1ae9f25ed5433b5c6e265d42e37da4f82a58679
12_fault.npz 1941 27 673 192040 ec27301f9a4cf7c5d8b22c360cf37ddb043b7fb062465723dfd8b34e2771e5dd
14_glass.npz 214 7 9 10755 aa7a8db1d475ba01a10488af454bc15220a3d5951b010b03b7020567d8152cdc
15_Hepatitis.npz 80 19 13 1644 4a87a2f7d8013e5bfde63294fae61ec7a612322de72f338a7f9491749025ad98
16_http.npz 567498 3 2211 2179269 9d98710091551587f4740cfc851a6b064fff6319a337c2dc77ee6da4bcc2e02c
17_InternetAds.npz 1966 1555 368 78157 bdd8ad5cf5bf2cb96cba53dde30d522d0f6a279083a8e2bc7efbac5981b04385
18_Ionosphere.npz 351 32 126 42913 bca46cb0cfd1bf9ddef6cde5ad2215d54fb0189508d0d4c4eb98e788cad69001
19_landsat.npz 6435 36 1333 223827 ba17e2158c07469597b89db49d3982c874c6b713ff6670721ddc88969da77987
20_letter.npz 1600 32 100 23946 f986d3da80cf1fa2aea83a5ebe73b7d4800e0d4c01fdd1ae074b58d20f10d039
21_Lymphography.npz 148 18 6 1895 dad977b04f4ea65b78ccd0e9f76b45175bad605165b37e63f3cc177845e67037
22_magic.gamma.npz 19020 10 6688 1296704 0be375984d7af9ea7a63b12206c240840d8b7daa3607021c5fb8756407dd86f1
23_mammography.npz 11183 6 260 166764 a0308ac9712d78321073b1c2dc98dc37665c0f35c1cc33019416fe8f8d7de7ea
24_mnist.npz 7603 100 700 455359 be7706272325fdd3592c1be555ae1a82f916a2f8545f4f8cbaa548ab102cc44c
25_musk.npz 3062 166 97 736255 2ed3f4392197b76a1e59116ff880c7720a4b026cf4842073a53b56fdea265017
26_optdigits.npz 5216 64 150 197633 60de17a375a278ba220a7849727d998aa02b5e2f9fd17732a004bba28de4656e
27_PageBlocks.npz 5393 10 510 102998 10a9b4d5bb5d3b9083caab4c4062f665610eada703c3d927bf7c34b1f2d0d223
28_pendigits.npz 6870 16 156 653509 c4936b89dcdad59d303020e492f763a0f54170080d787c77497609acbb9c2d79
29_Pima.npz 768 8 268 11023 215454bb263a2f040945c9ea7bd7f06f1e89a61a3143bdb6f196e3887e801a7d
30_satellite.npz 6435 36 2036 129874 1f048f5686f1b8c16a227fdfa3c81a62cd9a92715714a6b24c69b1c5ad96b46e
31_satimage-2.npz 5803 36 71 181405 1b056e357f801b8b20c3f380a30224a3c4088d7ed764ec5a24828dc9b1918d6f
32_shuttle.npz 49097 9 3511 332929 26900b0f6be45d9ddb7a402c9b2f956ceda42d23a8ca4cf4406b8bc1352823d1
33_skin.npz 245057 3 50859 618680 d02aa01ffc1b6bf2b8b1ac250c90e8a8eacd0cefc962940ed5cc4bf5deac9c95
34_smtp.npz 95156 3 30 496392 d2569fc9bc12115419e3f5b37d19921e10e6c26e5ad1e61064cfb0fbc402dfdd
35_SpamBase.npz 4207 57 1679 152038 d0c46c7928e43f6496bcd06e09de0b70f6bc8143792dfa0a43f450263d254e9b
37_Stamps.npz 340 9 31 20569 99fe739447284f613fa54bf2dccdb51c5120175ce6260adec6dad77576c42509
38_thyroid.npz 3772 6 93 39882 8de161b3f235b7647bb0b39a836d983ff61d67bf234edac461da2d71e889cb87
39_vertebral.npz 240 6 30 4868 0816286f92b96fe6867664a41a031ac7228dcfbf1a5feefe50ca3883b2e9073d
40_vowels.npz 1456 12 50 134268 4bfc4244d1c882773bbbc50d4a5db5e52276e53506e46b2d45e02d074cfcb1b6
41_Waveform.npz 3443 21 100 145028 6c9d867337ad1a2f8372c1d27f4c032f0401237e2041b7c45f00de8d319ff30f
42_WBC.npz 223 9 10 1444 650f9dcb129248f67a291be0974f533ef259fcbde50fce5c8ad2a1cb2652d03b
43_WDBC.npz 367 30 10 46770 78d4606a1ab516f5b60b00c196497f3bbd6bd5e4548fd04cf5f2475209b34b85
44_Wilt.npz 4819 5 257 134531 c70b72aa611ec87b20efb400943ef3ce4f8bf7aa58fcef825fbd28cc5cee3cc9
45_wine.npz 129 13 10 4072 d5ad8965d92cc57122fe1e6572bb301adbaf795b3e166d187ae00a704d8f6e20
46_WPBC.npz 198 33 47 44367 68a6d67242643855713bcdad07d89ecc472bd00000dccc17ba87916eb2693d19
47_yeast.npz 1484 8 507 14707 bbb15c873d78a4f6a589f46d0f75814595e2282d2ae7ce7779c750f276c3770d
"""


def _table(line: str) -> Table:
    file, rows, columns, anomalies, size, sha256 = line.split()
    return Table(file, int(rows), int(columns), int(anomalies), int(size), sha256)


TABLES: Final[dict[str, Table]] = {
    table.file.partition("_")[2].removesuffix(".npz"): table
    for table in map(_table, _FACTS.strip().splitlines())
}


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

_SHA256: Final = {
    "annthyroid_21feat_normalised.csv": "e99d27d8d34ef4c6af1bd5fa76d9c0d39de8b1321f67955e2d3fc65747887fc8",
    "bank-additional-full_normalised.csv": "42d447765b575fcffd5f11757b4d2523cc63ae8c7978f335c6d027665f597d92",
    "celeba_baldvsnonbald_normalised.csv": "58b66bb7a824e99fe7d31133831ed9575193f49022926afb740278b7a68d792f",
    "census-income.data.gz": "3a8265c042a3a804761b804e3fbd2b44d26780fc11848cdc499a439b6ec209c2",
    "census-income.test.gz": "5ac4cacd3ca9f1ecb10de1a0a41e4ac68fdc419e3fec190f5c0c6cc03b2ea659",
    "zip.train.gz": "66ebf231ab51f2cf6ac1a892d0f98ccffee1079d7a5db638c1f11f366046ca16",
    "zip.test.gz": "8dacc3c6e136af6c3488de9e5113a7daf140c8c2f1f0b61c54ee02f03f1a962f",
    "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    "nasa-telemanom.zip": "0b27efaed40aeb436dcc9d420e63fa3518f0c83c9981df7897a5d551a52c1696",
    "smd-omnianomaly.zip": "0bd2d552eae006936d9e7fa85dc883917fc43ceafdc4b538fc221e619cb714a7",
}
# no other folder's hashes were found in public; those are the hashes of the copies we used
_PUBLISHED: Final = {_MNIST: "pytorch/vision, torchvision/prototype/datasets/_builtin/mnist.py"}


def _files(folder: str, **sizes: int) -> tuple[RemoteFile, ...]:
    return tuple(
        RemoteFile(name, folder + name, _SHA256[name], size, _PUBLISHED.get(folder))
        for name, size in sizes.items()
    )


def _archive(name: str, url: str, size: int, original: str) -> tuple[RemoteFile]:
    return (RemoteFile(name, url, _SHA256[name], size, original=original),)


_ENTRIES = {
    "thyroid": Entry(
        _files(_ADREPOSITORY, **{"annthyroid_21feat_normalised.csv": 607_277}),
        *(7_200, 21, 534),
        source="https://archive.ics.uci.edu/dataset/102/thyroid+disease",
        licence="CC BY 4.0",
        citation="Quinlan, Thyroid Disease, UCI Machine Learning Repository, 1986, doi:10.24432/C5D010;"
        " scaled by Pang, Shen and van den Hengel, KDD 2019",
    ),
    "campaign": Entry(
        _files(_ADREPOSITORY, **{"bank-additional-full_normalised.csv": 7_151_546}),
        *(41_188, 62, 4_640),
        source="https://archive.ics.uci.edu/dataset/222/bank+marketing",
        licence="CC BY 4.0",
        citation="Moro, Rita and Cortez, Bank Marketing, UCI Machine Learning Repository, 2014,"
        " doi:10.24432/C5K306; scaled by Pang, Shen and van den Hengel, KDD 2019",
    ),
    "celeba": Entry(
        _files(_ADREPOSITORY, **{"celeba_baldvsnonbald_normalised.csv": 16_410_672}),
        *(202_599, 39, 4_547),
        source="http://mmlab.ie.cuhk.edu.hk/projects/CelebA.html",
        licence="non-commercial research only",
        citation="Liu, Luo, Wang and Tang, Deep learning face attributes in the wild, ICCV 2015;"
        " made a table by Pang, Shen and van den Hengel, KDD 2019",
    ),
    "census": Entry(
        _files(_UCI, **{"census-income.data.gz": 5_988_689, "census-income.test.gz": 3_261_416}),
        *(299_285, 500, 18_568),
        source="https://archive.ics.uci.edu/dataset/117/census+income+kdd",
        licence="CC BY 4.0",
        citation="Census-Income (KDD), donated by Lane and Kohavi, UCI Machine Learning Repository, 2000,"
        " doi:10.24432/C5N30T",
    ),
    "usps": Entry(
        _files(_ESL, **{"zip.train.gz": 1_829_071, "zip.test.gz": 439_208}),
        *(3_916, 256, 708),
        source="https://hastie.su.domains/ElemStatLearn/data.html",
        licence="not stated",
        citation="Le Cun et al., 1990; from the site of Hastie, Tibshirani and Friedman, The Elements of"
        " Statistical Learning",
    ),
    "mnist": Entry(
        _files(
            _MNIST,
            **{"train-images-idx3-ubyte.gz": 9_912_422, "train-labels-idx1-ubyte.gz": 28_881},
            **{"t10k-images-idx3-ubyte.gz": 1_648_877, "t10k-labels-idx1-ubyte.gz": 4_542},
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
            2_215_078,
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
            63_858_309,
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
