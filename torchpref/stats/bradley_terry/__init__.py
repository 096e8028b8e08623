"""The Bradley–Terry model with soft labels."""
