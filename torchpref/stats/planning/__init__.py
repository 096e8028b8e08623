"""How many instances and trials a comparison takes."""
