"""Products of a layer's moments: which formats and libraries there are, and which to use."""
