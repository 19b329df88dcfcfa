"""Sources: files, tables of lakes and queries, read where they lie (`reading.Sources`)."""
