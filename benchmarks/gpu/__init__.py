"""What a GPU does otherwise: recorded passes, batches, mixed precision, and a service."""
