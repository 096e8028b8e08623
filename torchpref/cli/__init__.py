"""The command line. Whatever is heavy is imported by the command that needs it, so that ``--help`` answers at once."""

from torchpref.cli.app import main

__all__ = ["main"]
