"""The image family: small pictures of digits, drawn by this package and coded as tokens, and the model that
learns to write them."""
