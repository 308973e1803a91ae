from pac_wrap.detectors.estimator import divided


def test_divided() -> None:
    import pandas as pd

    X, groups = divided(pd.DataFrame({"a": [1, 2], "tenant": ["x", "y"]}), "tenant")
    assert (list(X.columns), list(groups)) == ((["a"], ["x", "y"]))
