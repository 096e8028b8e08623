"""The public names, each with the module that defines it. ``__init__.py`` reads this list."""

from types import ModuleType

from torchpref import io as io
from torchpref import kernels as kernels
from torchpref import meta as meta
from torchpref import report as report
from torchpref import rl as rl
from torchpref import sgrl as sgrl
from torchpref.errors import DataError as DataError
from torchpref.errors import MissingExtraError as MissingExtraError
from torchpref.errors import TorchPrefError as TorchPrefError
from torchpref.errors import TorchPrefWarning as TorchPrefWarning
from torchpref.errors import UsageError as UsageError
from torchpref.evaluation.budget import budget_curves as budget_curves
from torchpref.evaluation.clock_bounds import clock_bounds as clock_bounds
from torchpref.evaluation.comparison import compare as compare
from torchpref.evaluation.evaluate import evaluate as evaluate
from torchpref.evaluation.gating import gate as gate
from torchpref.evaluation.monitor import monitor as monitor
from torchpref.evaluation.monitor import next_runs as next_runs
from torchpref.evaluation.result import Evaluation as Evaluation
from torchpref.io.convert import convert as convert
from torchpref.io.convert import formats as formats
from torchpref.io.reading import read as read
from torchpref.meta import meta_evaluate as meta_evaluate
from torchpref.pairwise.means import MeanPreferences as MeanPreferences
from torchpref.pairwise.means import mean_preferences as mean_preferences
from torchpref.pairwise.preferences import Preferences as Preferences
from torchpref.pairwise.preferences import all_preferences as all_preferences
from torchpref.pairwise.preferences import preferences as preferences
from torchpref.pairwise.sharding import sharded_preferences as sharded_preferences
from torchpref.pairwise.streaming import stream_preferences as stream_preferences
from torchpref.runs.audit import audit as audit
from torchpref.runs.curves import time_to_return as time_to_return
from torchpref.runs.measures import MEASURES as MEASURES
from torchpref.runs.trajectories import Trajectories as Trajectories
from torchpref.stats.bradley_terry.model import BradleyTerry as BradleyTerry
from torchpref.stats.bradley_terry.model import bradley_terry as bradley_terry
from torchpref.stats.planning.planning import plan as plan
from torchpref.stats.ranking.influence import influence as influence
from torchpref.stats.ranking.ranking import rank as rank
from torchpref.stats.ranking.ranking import rank_all as rank_all
from torchpref.stats.significance.significance import significance as significance

__version__: str
grid: ModuleType
