"""Files of the commands: rows that are read, predictions that are written."""
