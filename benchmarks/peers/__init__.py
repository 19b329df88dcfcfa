"""The other libraries, each measured in its own virtual environment."""
