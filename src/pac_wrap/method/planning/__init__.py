"""Sample-size planning: the labels that a promise needs, and labelling until it can be kept."""
