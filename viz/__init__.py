"""A trace in, a picture out. Imports nothing of the engine but its trace reader and its tree."""
