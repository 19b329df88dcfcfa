"""What a GPU does otherwise: batches, mixed precision, and a service."""
