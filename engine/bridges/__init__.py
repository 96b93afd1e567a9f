"""Bridges to serving engines: settings for engines, records from engines, and a judgement of drafters' checkpoints
for engines."""
