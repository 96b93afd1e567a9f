"""Small scenes drawn by code, sentences about scenes, and pictures that a prompt brings."""
