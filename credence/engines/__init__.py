"""Loaded models on the engines of others: Spark, Ray Data, Dask, DuckDB and MLflow.

Each module needs its engine, which is no dependency of this package.
Workers need the distribution `credence-models`.
"""
