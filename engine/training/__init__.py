"""Recipes (commands) that train the embedded family, the models that come with Draftscope: tokenizer, target, draft
model and block-diffusion drafter."""
