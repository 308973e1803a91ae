from pac_wrap.series.windows import as_positions


def test_as_positions() -> None:
    assert as_positions([0, 60, 120]).tolist() == [0, 60, 120]
