"""SkyRL: an advantage estimator (read against SkyRL 0.3; not run, it needs Python 3.12)."""

from __future__ import annotations

from typing import Any


def register(name: str = "preference", **options: Any) -> None:
    """Register an estimator: :func:`torchpref.rl.tokens.token_advantages` with these options.

    Then ``trainer.algorithm.advantage_estimator=preference``. SkyRL puts each turn's reward on that turn's last token, and its
    ``response_mask`` is 1 on outputs of tools too, so that the ``loss_mask`` is used where the trainer hands it over; without
    it, outputs of tools count as tokens, of all rollouts alike.
    """
    from skyrl.backends.skyrl_train.utils.ppo_utils import register_advantage_estimator

    from torchpref.rl.tokens import token_advantages

    def estimator(
        token_level_rewards: Any, response_mask: Any, index: Any, loss_mask: Any = None, **others: Any
    ) -> tuple[Any, Any]:
        mask = response_mask if loss_mask is None else loss_mask
        advantages = token_advantages(token_level_rewards, mask, list(index), **options)
        return advantages, advantages

    register_advantage_estimator(name)(estimator)


__all__ = ["register"]
