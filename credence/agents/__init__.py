"""Tools for agents, over the Model Context Protocol (https://modelcontextprotocol.io).

A tool is a class: its docstring is the description, its fields are the arguments, and `run` calls
the service through `AsyncClient`. `credence mcp` serves the tools over stdio, the service itself at
`/mcp`. Both send the same HTTP requests as any other client, so there are no other rules here.

It needs the extra `mcp` of the distribution `credence-client`.
"""
