"""A language model and a tokenizer small enough to be made on the spot; nothing is downloaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def tokenizer() -> Any:
    """Bytes as tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<pad>"]
    made = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(special + alphabet)}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=made,
        eos_token="<|im_end|>",
        pad_token="<pad>",
        padding_side="left",
        additional_special_tokens=["<|im_start|>", "<|endoftext|>"],
    )


def model(tokens: Any, kind: str = "causal") -> Any:
    """Two layers of Llama with random weights; ``kind`` is ``"causal"`` or ``"score"``."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, LlamaForSequenceClassification

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokens),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        pad_token_id=tokens.pad_token_id,
        eos_token_id=tokens.eos_token_id,
        num_labels=1,
    )
    return LlamaForCausalLM(config) if kind == "causal" else LlamaForSequenceClassification(config)


def saved(folder: Path, tokens: Any, kind: str = "causal") -> str:
    """The model in a folder, for trainers that load it by name."""
    model(tokens, kind).save_pretrained(folder)
    tokens.save_pretrained(folder)
    return str(folder)


def quiet(folder: Path, **options: Any) -> dict[str, Any]:
    """Arguments that every trainer here shares."""
    return {
        "output_dir": str(folder),
        "use_cpu": True,
        "bf16": False,
        "report_to": "none",
        "save_strategy": "no",
        "disable_tqdm": True,
        "gradient_checkpointing": False,
        "logging_steps": 5,
        **options,
    }
