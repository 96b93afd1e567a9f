"""Bridges to serving engines: settings for engines, records from engines, and judgements of drafter checkpoints for
engines."""
