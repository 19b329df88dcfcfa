"""`credence serve`: the API in a thread and the worker in a process, under one supervisor."""
