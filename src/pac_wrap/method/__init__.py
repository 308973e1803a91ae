"""The statistics: labelled scores in, certificate out."""
