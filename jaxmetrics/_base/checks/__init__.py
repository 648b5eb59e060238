"""Checks of arguments, before any work: arrays, items, lists, predictions, options.

Other packages build on these checks for what they alone know: ids of labels in `extreme`, bins and
states in `streaming`, scikit-learn's targets in `sklearn`, models in `plots`, files in `_report`.

Shapes, dtypes and options are always checked. Values are checked if they are concrete. Under a
transformation they are unknown, and an undefined result is NaN.
"""

from jaxmetrics._base.checks.arrays import (
    as_array,
    as_arrays,
    check_alignment,
    check_sizes,
    empty_as_ids,
    items_last,
    own,
    unwrapped,
    wide_ids,
)
from jaxmetrics._base.checks.inference import (
    check_clusters,
    check_grid,
    check_ids,
    check_key,
    check_level,
    check_models,
    check_one_or_models,
    check_rows,
    check_slices,
)
from jaxmetrics._base.checks.items import (
    check_axis,
    check_classes,
    check_columns,
    check_items,
    check_per_item,
    check_values,
)
from jaxmetrics._base.checks.lists import (
    check_grades,
    check_list_options,
    check_lists,
    check_segments,
)
from jaxmetrics._base.checks.losses import check_loss_options, check_slots
from jaxmetrics._base.checks.options import QUANTILE_METHODS, check_options
from jaxmetrics._base.checks.predictions import (
    check_beta,
    check_class_filter,
    check_class_range,
    check_n_classes,
    check_positive_class,
    check_predictions,
    check_zero_division,
)
from jaxmetrics._base.checks.values import (
    check_above,
    check_axis_name,
    check_choice,
    check_count,
    check_cutoffs,
    check_fits,
    check_flag,
    check_nonnegative,
    check_number,
    check_reference,
)
from jaxmetrics._base.quoting import brief
