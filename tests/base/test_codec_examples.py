from pac_wrap.base.codec import checksum_of


def test_checksum_of() -> None:
    assert (checksum_of('{"checksum": "ab"}')) == ("ab")
