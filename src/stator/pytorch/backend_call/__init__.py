"""Handing a graph to the backend: the environment it expects, and what is handed over one piece at a time."""
