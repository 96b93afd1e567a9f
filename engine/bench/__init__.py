"""This engine and its alternatives, side by side, in one run.

All contestants decode greedily in fp32, on the same weights and prompts, taking turns within one
process. The peers (transformers' own generate) run on modules of their own, which the engine never
touches.
"""
