"""Recipes that make the embedded family: tokenizer, target, draft and block-diffusion drafter."""
