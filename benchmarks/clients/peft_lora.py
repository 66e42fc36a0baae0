"""peft: a compiled model with a LoRA adapter, trained, without its adapter, saved, and its state loaded again."""

from __future__ import annotations

from typing import Any

import torch
from peft import LoraConfig, get_peft_model, get_peft_model_state_dict, set_peft_model_state_dict
from transformers import LlamaConfig, LlamaForCausalLM


def run(backend: str | None) -> list[Any]:
    config = LlamaConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32
    )
    model = get_peft_model(LlamaForCausalLM(config), LoraConfig(r=2, target_modules=["q_proj", "v_proj"]))
    compiled: Any = model if backend is None else torch.compile(model, backend=backend)
    optimizer = torch.optim.AdamW([p for p in compiled.parameters() if p.requires_grad], lr=1e-2)
    for n in (6, 7, 8):
        ids = torch.randint(0, 50, (2, n))
        loss = compiled(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    with torch.no_grad():
        with compiled.disable_adapter():
            without = compiled(input_ids=ids).logits
        state = get_peft_model_state_dict(compiled)
        set_peft_model_state_dict(compiled, {name: 2 * t for name, t in state.items()})
        return [loss, without, compiled(input_ids=ids).logits, *state.values()]
