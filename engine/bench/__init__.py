"""Measurements: contestants write after prompts, in turn, and their steps are counted (``suite``).

Every file ``NAME_suite.py``, here or in the folder of a method, is one suite: a function ``measure`` that makes contestants,
chooses prompts, runs a ``Suite`` and returns a ``Report``, which has one table writer and one JSON writer for all.
"""
