"""Draftscope's engine: real speculative decoding, a step at a time.

``open_run(RunRequest(...))`` is the way in for the page, the command line and scripts;
``engine.core.decode.decode`` is the loop below it, ``engine.batch.together.decode_together`` the same loop
for several texts at once.
"""
