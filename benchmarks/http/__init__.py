"""Credence compared with other servers under load."""
