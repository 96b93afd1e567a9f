"""Passes compiled by OpenVINO for a CPU.

``graph`` is a module's full pass as one stateless function, ``store`` compiles it or finds it in the cache
folder, ``columns`` are the buffers it reads, and ``passes`` and ``model`` build sessions on these.
"""
