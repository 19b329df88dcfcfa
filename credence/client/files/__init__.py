"""Files of rows on their way to the service."""
