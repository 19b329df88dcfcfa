"""Where predictions are written, part by part: a folder or a bucket, as Parquet files or Delta."""
