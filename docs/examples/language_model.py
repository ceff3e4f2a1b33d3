"""A language model's prefill and decode, with tokens/s. The step of `prefill` is the time to first token.

pip install "transformers==5.24.*"
kit run --program language_model.py:prefill --program language_model.py:decode --batch 1

The model is a small Llama from a configuration, without weights: replace CONFIG by yours.
"""

import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

PROMPT = 128  # tokens
CONFIG = LlamaConfig(
    vocab_size=8192,
    hidden_size=256,
    intermediate_size=688,
    num_hidden_layers=4,
    num_attention_heads=4,
    num_key_value_heads=2,
)


def made(batch, device):
    place = {"cpu": "cpu", "gpu": "cuda"}[device]
    model = LlamaForCausalLM(CONFIG).to(place).eval()
    return model, torch.randint(CONFIG.vocab_size, (batch, PROMPT), device=place)


def first_token(model, prompt, cache):
    """Read the prompt and choose the next token of each sequence, shape (batch, 1)."""
    logits = model(input_ids=prompt, cache=cache, use_cache=True, logits_to_keep=1).logits
    return logits.argmax(-1)


def prefill(batch, device):
    model, prompt = made(batch, device)

    def step():
        with torch.inference_mode():
            return first_token(model, prompt, DynamicCache(config=CONFIG))

    return {"step": step, "tokens": prompt.numel()}


def decode(batch, device):
    model, prompt = made(batch, device)
    cache = DynamicCache(config=CONFIG)
    with torch.inference_mode():
        token = first_token(model, prompt, cache)

    def step():
        with torch.inference_mode():
            following = first_token(model, token, cache)
            # The cache loses its newest token, so that each step does the same work: the token after the prompt.
            cache.crop(-1)
            return following

    return {"step": step, "tokens": batch}
