"""What a run is: returns and times as integers, names, measures, and what was noticed when they were read."""
