"""Tables of many files: Parquet, CSV, Delta Lake, Iceberg, made one file before they are read."""
