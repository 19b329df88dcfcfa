"""Workbooks of Excel and OpenDocument: which sheet, where its table is, what its cells hold."""
