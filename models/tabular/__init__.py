"""Models of a table's rows: regression and classification."""
