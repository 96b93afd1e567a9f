"""The image family: small pictures of digits, drawn here, as tokens, and the model that learns to write them."""
