"""What a prediction does otherwise on a GPU: its memory, its copies, and recorded passes.

A processor runs the same code: tests replay passes there that a GPU would replay as CUDA graphs.
"""
