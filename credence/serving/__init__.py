"""How `credence serve` runs: the API in a thread, the worker in a process, both under one roof."""
