"""Reproductions of published examples, with results beside the references."""
