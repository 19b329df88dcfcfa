"""Training on tables larger than memory: columns are read in blocks, encoded rows are on disk."""
