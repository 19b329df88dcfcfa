"""Reproductions of published examples, compared with the published results."""
