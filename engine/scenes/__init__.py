"""Small scenes and films drawn by code, what is said of them, and pictures that a prompt brings."""
