"""Model passes with little overhead. The package imports models and trees, but no drafting method."""
