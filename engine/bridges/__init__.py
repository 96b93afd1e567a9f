"""Bridges to serving engines: settings for them, records from them, and what a drafter's checkpoint is to them."""
