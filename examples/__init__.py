"""Programs that show the service at work."""
