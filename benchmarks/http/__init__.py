"""Credence beside other servers, under load."""
