"""Webhooks: what happened is told to receivers by signed requests."""
