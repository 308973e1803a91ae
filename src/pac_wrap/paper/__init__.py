"""The experiments of the paper: data sets, its detectors, baselines, validation and studies."""
