"""Building blocks of several methods: a draft model, heads, a cell, a block, a datastore. Imports no method."""
