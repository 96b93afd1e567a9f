"""Benchmarks: contestants take turns to continue prompts, and their steps are counted (``suite``).

Every file ``NAME_suite.py``, here or in the folder of a method, is one suite. Its function ``measure`` makes
contestants, chooses prompts, runs a ``Suite`` and returns a ``Report``. ``report`` writes the tables and the JSON of
all suites.
"""
