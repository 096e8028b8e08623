"""Rankings with scores, intervals of scores and ranks, and influential instances."""
