"""Predictions of files into a folder of Parquet files, part by part: a killed run goes on."""
