"""Draftscope's engine: speculative decoding with real models, one step at a time.

``open_run(RunRequest(...))`` is the entry for the page, the command line and scripts; ``engine.core.decode.decode`` is
the loop that it runs, ``engine.batch.together.decode_together`` the same loop for several texts at once.
"""
