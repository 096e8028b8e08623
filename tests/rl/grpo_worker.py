"""One process of a GRPO run whose groups are split over processes; started by torchrun in test_trl.py.

grpo_worker.py OUTPUT_FOLDER PER_DEVICE_BATCH GATHER
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import tiny_llm
import torch.distributed as dist
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from torchpref.errors import UsageError
from torchpref.rl import PreferenceReward

GROUP = 4


def main() -> None:
    folder, batch, gather = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "gather"
    rank = int(os.environ["RANK"])
    calls: list[dict] = []

    def trace(row: dict) -> dict | None:
        """Returns rise with every third token; times are token positions; some rollouts cannot be scored."""
        ids = row["completion_ids"]
        if len(ids) and ids[0] % 7 == 0:
            return None
        steps = [1 + k for k, token in enumerate(ids) if token % 3 == 0][:4]
        return {"returns": [(k + 1) / 4 for k in range(len(steps))], "times": [float(step) for step in steps]}

    class Recorded(PreferenceReward):
        def __call__(self, prompts, completions, completion_ids=None, **rest):
            values = super().__call__(prompts, completions, completion_ids, **rest)
            traces = [trace({"completion_ids": ids}) for ids in completion_ids]
            calls.append({"prompts": list(prompts), "traces": traces, "rewards": values})
            return values

    tokens = tiny_llm.tokenizer()
    args = GRPOConfig(
        **tiny_llm.quiet(folder / f"out-{rank}"),
        max_steps=20,
        learning_rate=1e-2,
        num_generations=GROUP,
        per_device_train_batch_size=batch,
        max_completion_length=12,
        scale_rewards="none",
        ddp_find_unused_parameters=False,
    )
    trainer = GRPOTrainer(
        model=tiny_llm.model(tokens),
        reward_funcs=Recorded(trace, GROUP, clock="tokens", gather=gather),
        args=args,
        train_dataset=Dataset.from_list([{"prompt": f"task {number}"} for number in range(8)]),
        processing_class=tokens,
    )
    outcome = "trained"
    try:
        trainer.train()
    except UsageError as error:
        outcome = str(error)
    logs = [line for line in trainer.state.log_history if "preference/success" in line]
    text = json.dumps({"outcome": outcome, "calls": calls, "logs": logs, "world": dist.get_world_size()})
    (folder / f"rank-{rank}.json").write_text(text)
    # The interpreter must not end while a gloo thread still holds a tensor.
    del trainer
    gc.collect()
    dist.destroy_process_group()
    time.sleep(0.5)


if __name__ == "__main__":
    main()
