"""The parts of `examples/demo.py`: service, data, chapters, pictures."""
