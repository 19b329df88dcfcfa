"""The Open Inference Protocol v2 with its binary tensor extension: another skin of predictions.

tensors   bytes or JSON ↔ arrays of the protocol's data types
inputs    input tensors → the columns that a model names
outputs   a prediction → output tensors
messages  bytes → a request; a response → bytes
"""
