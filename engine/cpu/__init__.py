"""Passes compiled by OpenVINO for a CPU.

``graph`` is a module's full pass as one function without a state, ``store`` compiles it or finds it in the
cache folder, ``columns`` are the buffers it reads, ``passes`` and ``model`` make sessions of that.
"""
