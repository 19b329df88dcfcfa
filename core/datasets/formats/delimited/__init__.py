"""Delimited text: CSV, TSV and their kin. `reader` has the entry."""
