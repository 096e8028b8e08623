"""How far preferences can be trusted: scores, intervals, tests, ranks and plans."""
