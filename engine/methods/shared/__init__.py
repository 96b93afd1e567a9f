"""What several methods stand on: a draft model, heads, a cell, a block, a datastore. Imports no method."""
