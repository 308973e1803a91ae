"""The experiments of the paper: data sets, its detectors, baselines and studies."""
