"""Passes compiled by OpenVINO for a CPU.

``graph`` writes a module's full pass as one stateless function. ``store`` compiles this function or reads the compiled
graph from the cache folder. ``columns`` holds the KV buffers that a graph reads. ``passes`` calls the graphs, and
``compiled_model`` builds sessions on them.
"""
