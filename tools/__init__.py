"""Commands for those who host the page."""
