"""Measurements that need a GPU: the suites ``kernels``, ``gpu`` and ``drafts``."""
