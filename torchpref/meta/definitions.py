"""What each figure of meta-evaluation means, in the order of the table.

Source: *Offline Preference-Based Trajectory Evaluation*, arXiv 2606.17541, whose figures are made precise here.
"""

from __future__ import annotations

from dataclasses import dataclass

from torchpref.errors import UsageError

#: Groups of the table, in order.
GROUPS = ("validity", "reliability", "sensitivity", "bias")

_BOOTSTRAP = (
    "Interval: instances drawn with replacement within each benchmark; percentiles of the replicates, moved by the "
    "difference between their mean and the value on the data (a replicate repeats instances, which shifts many figures)."
)
_SPLITS = "Interval: percentiles over the random splits, that is, where the figure of a single split lies."
_FAST = (
    "On the data p-values are those of torchpref.significance; in replicates those of a moment approximation of the same "
    "sign-flip test (torchpref.meta.fast_test)."
)


@dataclass(frozen=True)
class Definition:
    """A figure.

    Attributes:
        key: its name in code.
        group: validity, reliability, sensitivity or bias; empty for what is not a row of the table.
        title: its name in the table.
        percent: whether it is a share, shown in per cent; a correlation otherwise.
        text: the definition, and what its interval covers.
    """

    key: str
    group: str
    title: str
    percent: bool
    text: str


_ALL = (
    Definition(
        "oracle_accuracy", "validity", "oracle accuracy", True,
        "Share of the system pairs of the known order in which the sign of the mean preference agrees with that "
        "order; a tie counts as wrong. " + _BOOTSTRAP,
    ),
    Definition(
        "oracle_fwer", "validity", "  right and significant, FWER", True,
        "Share of the system pairs of the known order that are right and significant at α after Holm's correction "
        "for all pairs. " + _FAST + " " + _BOOTSTRAP,
    ),
    Definition(
        "oracle_fdr", "validity", "  right and significant, FDR", True,
        "Share of the system pairs of the known order that are right and significant at α after Benjamini and "
        "Hochberg's correction for all pairs. " + _FAST + " " + _BOOTSTRAP,
    ),
    Definition(
        "convergent", "validity", "convergent validity", False,
        "Mean Kendall τ-b between the ranking by this measure and the rankings by each of the others; the table "
        "of all pairs of measures is in .convergence. Rankings are by Bradley–Terry score, and by mean preference "
        "where there is no finite fit. " + _BOOTSTRAP,
    ),
    Definition(
        "split_half_pairs", "reliability", "split-half, pairs", False,
        "Correlation of mean preferences between two random halves of every benchmark's instances, over both "
        "orientations of every pair: Σxy / √(Σx² Σy²), so that the order of names does not matter. Mean over "
        "splits, not stepped up to the full length. " + _SPLITS,
    ),
    Definition(
        "split_half_ranking", "reliability", "split-half, ranking", False,
        "Kendall τ-b of the rankings of two random halves of every benchmark's instances, by Bradley–Terry score, "
        "and by mean preference where a half has no finite fit (on complete data both give one order). Mean over "
        "splits. " + _SPLITS,
    ),
    Definition(
        "leave_one_out", "reliability", "leave-one-out flips", True,
        "Share of system pairs whose mean preference strictly reverses its sign when some single instance is left "
        "out; a change to 0 is no flip. With one trial per run and equal weights it is 0 for SR and LR by "
        "construction. In a replicate, one drawn copy is left out. " + _BOOTSTRAP,
    ),
    Definition(
        "leave_one_out_cells", "reliability", "  per pair and instance", True,
        "Share of (system pair, instance) whose removal strictly reverses the sign of the pair's mean preference. "
        + _BOOTSTRAP,
    ),
    Definition(
        "tie_rate", "sensitivity", "tie rate", True,
        "Share of tied pairs of runs within an (instance, pair of systems), averaged over instances and pairs. " + _BOOTSTRAP,
    ),
    Definition(
        "power_fwer", "sensitivity", "discriminative power, FWER", True,
        "Share of system pairs that differ significantly at α after Holm's correction for all pairs. "
        + _FAST + " " + _BOOTSTRAP,
    ),
    Definition(
        "power_fdr", "sensitivity", "discriminative power, FDR", True,
        "Share of system pairs that differ significantly at α after Benjamini and Hochberg's correction for all "
        "pairs. " + _FAST + " " + _BOOTSTRAP,
    ),
    Definition(
        "bias_pairs", "bias", "false positives, pairs", True,
        "Between pseudo-systems that are trials of one system: share of pairs that are significant at α after "
        "Holm's correction for all such pairs. In each draw the trials of every instance are dealt to the pseudo- "
        "systems at random; instances are not resampled, since repeated instances would make equal systems look "
        "different. Interval: Wilson's, of the share over draws and pairs with the draws as sample size.",
    ),
    Definition(
        "bias_draws", "bias", "false positives, draws", True,
        "Between pseudo-systems that are trials of one system: share of draws with any pair significant at α "
        "after Holm's correction; at most α if the test keeps its promise. Draws as in bias_pairs. Interval: "
        "Wilson's over draws.",
    ),
    Definition(
        "data_efficiency", "", "data efficiency", True,
        "The figures above against the share of instances kept: 10 % … 100 %, drawn without replacement within "
        "each benchmark, repeatedly. A row holds the mean over draws and percentiles of the draws. p-values are "
        "those of the fast test.",
    ),
    Definition(
        "saturation", "", "saturation", True,
        "Discriminative power against the success rate of the instances compared: instances are sorted by the "
        "share of runs that succeed and cut into ten bins of equal count, and all pairs are tested within each "
        "bin: a tenth of the instances, whose power is less for that reason alone. Intervals as for the "
        "discriminative power, within the bin. p-values are those of the fast test.",
    ),
    Definition(
        "power_by_budget", "", "power by budget", True,
        "Discriminative power of the same runs, on all instances, stopped when one tenth of the successes has come, two "
        "tenths, and so on; the share of runs that succeed by then stands beside the budget. Intervals as for the "
        "discriminative power. p-values are those of the fast test.",
    ),
    Definition(
        "power_by_pair", "", "power by success of the pair", True,
        "Discriminative power among pairs of systems, on all instances, in five bins of equal count by the mean success "
        "rate of the two; corrected for all pairs of all bins. Intervals as for the discriminative power. p-values are "
        "those of the fast test.",
    ),
    Definition(
        "subgoals", "", "robustness to subgoals", True,
        "The figures above after changing the annotation of partial return, level by level of each instance, "
        "success kept: drop (one intermediate level is gone and the others share its weight in proportion), merge "
        "(one intermediate level gives its weight to the next one, so that it counts only when that is reached) "
        "and jitter (the weights of all levels are multiplied by random factors between 1/2 and 2 and made to add "
        "up to 1). Beside them Kendall's τ-b with the ranking and the share of pairs with the same sign of the "
        "mean preference as on the data. Mean and extremes over draws.",
    ),
)  # fmt: skip

#: All definitions by key.
DEFINITIONS: dict[str, Definition] = {definition.key: definition for definition in _ALL}
#: Keys of the rows of the table.
FIGURES: tuple[str, ...] = tuple(definition.key for definition in _ALL if definition.group)


def explain(figure: str) -> str:
    """The definition of a figure by its key (or title), and what its interval covers.

    Raises:
        UsageError: there is no such figure.
    """
    wanted = figure.strip().lower().replace("-", "_").replace(" ", "_").replace(",", "")
    for definition in _ALL:
        title = definition.title.strip().lower().replace("-", "_").replace(" ", "_").replace(",", "")
        if wanted in (definition.key, title):
            return f"{definition.title.strip()}: {definition.text}"
    raise UsageError(f"no figure {figure!r}; the figures are {', '.join(DEFINITIONS)}")
