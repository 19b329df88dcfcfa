"""Chaos as code: real processes are killed, paused and misled, and nothing may be lost."""
