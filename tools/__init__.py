"""Commands for the host of the page."""
