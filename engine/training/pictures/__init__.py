"""The image family: this package draws small pictures of digits, codes them as tokens, and trains a model that writes
such pictures."""
