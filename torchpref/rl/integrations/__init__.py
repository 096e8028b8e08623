"""Preferences in trainers: one small module per trainer, each with one public name.

None of them imports its trainer, nor torch, before it is used. ``docs/hooks.md`` shows the line for each, and says which ran
against which version of the real package. TRL, TorchRL, Stable-Baselines3 and Gymnasium have their adapters in
:mod:`torchpref.rl` itself.
"""
