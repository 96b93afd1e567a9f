"""Small scenes and films drawn by code, sentences about them, and pictures that come with a prompt."""
