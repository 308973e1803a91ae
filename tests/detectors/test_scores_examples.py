from pac_wrap.detectors.scores import lineage


def test_lineage() -> None:
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import OneClassSVM

    assert (lineage(make_pipeline(OneClassSVM()))) == ("Pipeline of OneClassSVM")
