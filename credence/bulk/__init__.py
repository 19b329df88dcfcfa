"""Predictions of files where they lie, part by part: a killed run goes on."""
