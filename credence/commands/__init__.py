"""The commands of `credence`, one module each."""
