"""Several texts in one pass of the target."""
