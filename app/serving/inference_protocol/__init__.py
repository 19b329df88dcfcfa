"""The Open Inference Protocol v2, with its binary tensor extension.

tensors   bytes or JSON ↔ arrays of the protocol's data types
inputs    input tensors → the columns of a model
outputs   a prediction → output tensors
messages  bytes → a request; a response → bytes
"""
