"""Pictures (extra ``plot``). Every function takes and returns a matplotlib ``Axes`` and needs no display."""

from torchpref.report.plots.bars import advantage, advantage_by_instance, advantage_by_level, tie_rates
from torchpref.report.plots.boards import bump_chart, leaderboard
from torchpref.report.plots.curves import return_curves, time_to_levels
from torchpref.report.plots.lines import budget_curves, data_efficiency, saturation
from torchpref.report.plots.looks import look_path, strips
from torchpref.report.plots.matrices import coverage, preference_matrix

__all__ = [
    "advantage",
    "advantage_by_instance",
    "advantage_by_level",
    "budget_curves",
    "bump_chart",
    "coverage",
    "data_efficiency",
    "leaderboard",
    "look_path",
    "preference_matrix",
    "return_curves",
    "saturation",
    "strips",
    "tie_rates",
    "time_to_levels",
]
