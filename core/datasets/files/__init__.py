"""From an uploaded file to a table: what the file is, how it is packed, how its text is written."""
