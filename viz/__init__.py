"""A trace in, a picture out. Of the engine it imports only the trace reader, the tree and the errors."""
