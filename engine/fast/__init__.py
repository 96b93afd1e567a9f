"""Passes with little overhead. Knows models and trees, and no method."""
