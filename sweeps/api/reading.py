"""Every read of the database that pages, charts and reports ask for, by name.

What belongs together stands in a file of its own in `sweeps.store.reads`.
"""

from sweeps.api.overview import configs_revision as configs_revision
from sweeps.api.overview import configurations as configurations
from sweeps.api.overview import members_revision as members_revision
from sweeps.api.overview import model as model
from sweeps.api.overview import model_seeds as model_seeds
from sweeps.api.overview import models as models
from sweeps.api.overview import one_moment as one_moment
from sweeps.api.overview import stored_epochs as stored_epochs
from sweeps.api.overview import sweeps_of as sweeps_of
from sweeps.api.watching import Note as Note
from sweeps.api.watching import notes as notes
from sweeps.store.database import limit_reads as limit_reads
from sweeps.store.reads.checkpoints import of_run as of_run
from sweeps.store.reads.checkpoints import stored_model as stored_model
from sweeps.store.reads.explained import causes as causes
from sweeps.store.reads.explained import not_learned as not_learned
from sweeps.store.reads.explained import sensitivity as sensitivity
from sweeps.store.reads.misclassified import accuracy_by_drawn as accuracy_by_drawn
from sweeps.store.reads.misclassified import border_accuracies as border_accuracies
from sweeps.store.reads.misclassified import string_errors as string_errors
from sweeps.store.reads.overview import language_names as language_names
from sweeps.store.reads.overview import settings as settings
from sweeps.store.reads.overview import settings_of as settings_of
from sweeps.store.reads.queries import check_done as check_done
from sweeps.store.reads.queries import configs as configs
from sweeps.store.reads.queries import epochs as epochs
from sweeps.store.reads.queries import find_run as find_run
from sweeps.store.reads.queries import length_scores as length_scores
from sweeps.store.reads.queries import revision as revision
from sweeps.store.reads.queries import run_config as run_config
from sweeps.store.reads.queries import run_status as run_status
from sweeps.store.reads.queries import runs_named as runs_named
from sweeps.store.reads.queries import why_no_weights as why_no_weights
from sweeps.store.reads.selection import Selection as Selection
from sweeps.store.reads.sweep_queries import failures as failures
from sweeps.store.reads.sweep_queries import specifications as specifications
from sweeps.store.reads.sweep_queries import sweep_names as sweep_names
from sweeps.store.reads.sweep_queries import sweep_record as sweep_record
from sweeps.store.shortcuts import best_shortcut as best_shortcut
from sweeps.store.shortcuts import best_shortcuts as best_shortcuts
from sweeps.store.shortcuts import shortcut_scores as shortcut_scores
from sweeps.store.shortcuts import shortcut_shares as shortcut_shares
from sweeps.store.tables import SweepState as SweepState
