"""What all fits share: rows, mini-batches, losses, the loop and its processes."""
