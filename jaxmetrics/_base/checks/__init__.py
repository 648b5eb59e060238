"""Checks of arguments, before any work: arrays, items, lists, predictions, options.

Other packages build on these checks for what they alone know: ids of labels in `extreme`, bins and
states in `streaming`, scikit-learn's targets in `sklearn`, models in `plots`, files in `_report`.

Shapes, dtypes and options are always checked. Values are checked if they are concrete. Under a
transformation they are unknown, and an undefined result is NaN.
"""

from jaxmetrics._base.checks.arrays import as_array as as_array
from jaxmetrics._base.checks.arrays import as_arrays as as_arrays
from jaxmetrics._base.checks.arrays import check_alignment as check_alignment
from jaxmetrics._base.checks.arrays import check_sizes as check_sizes
from jaxmetrics._base.checks.arrays import empty_as_ids as empty_as_ids
from jaxmetrics._base.checks.arrays import items_last as items_last
from jaxmetrics._base.checks.arrays import own as own
from jaxmetrics._base.checks.arrays import unwrapped as unwrapped
from jaxmetrics._base.checks.arrays import wide_ids as wide_ids
from jaxmetrics._base.checks.inference import check_clusters as check_clusters
from jaxmetrics._base.checks.inference import check_grid as check_grid
from jaxmetrics._base.checks.inference import check_ids as check_ids
from jaxmetrics._base.checks.inference import check_key as check_key
from jaxmetrics._base.checks.inference import check_level as check_level
from jaxmetrics._base.checks.inference import check_models as check_models
from jaxmetrics._base.checks.inference import check_one_or_models as check_one_or_models
from jaxmetrics._base.checks.inference import check_rows as check_rows
from jaxmetrics._base.checks.inference import check_slices as check_slices
from jaxmetrics._base.checks.items import check_axis as check_axis
from jaxmetrics._base.checks.items import check_classes as check_classes
from jaxmetrics._base.checks.items import check_columns as check_columns
from jaxmetrics._base.checks.items import check_items as check_items
from jaxmetrics._base.checks.items import check_per_item as check_per_item
from jaxmetrics._base.checks.items import check_values as check_values
from jaxmetrics._base.checks.lists import check_grades as check_grades
from jaxmetrics._base.checks.lists import check_list_options as check_list_options
from jaxmetrics._base.checks.lists import check_lists as check_lists
from jaxmetrics._base.checks.lists import check_segments as check_segments
from jaxmetrics._base.checks.losses import check_loss_options as check_loss_options
from jaxmetrics._base.checks.losses import check_slots as check_slots
from jaxmetrics._base.checks.options import QUANTILE_METHODS as QUANTILE_METHODS
from jaxmetrics._base.checks.options import check_options as check_options
from jaxmetrics._base.checks.predictions import check_beta as check_beta
from jaxmetrics._base.checks.predictions import check_class_filter as check_class_filter
from jaxmetrics._base.checks.predictions import check_class_range as check_class_range
from jaxmetrics._base.checks.predictions import check_n_classes as check_n_classes
from jaxmetrics._base.checks.predictions import check_positive_class as check_positive_class
from jaxmetrics._base.checks.predictions import check_predictions as check_predictions
from jaxmetrics._base.checks.predictions import check_zero_division as check_zero_division
from jaxmetrics._base.checks.values import check_above as check_above
from jaxmetrics._base.checks.values import check_axis_name as check_axis_name
from jaxmetrics._base.checks.values import check_choice as check_choice
from jaxmetrics._base.checks.values import check_count as check_count
from jaxmetrics._base.checks.values import check_cutoffs as check_cutoffs
from jaxmetrics._base.checks.values import check_fits as check_fits
from jaxmetrics._base.checks.values import check_flag as check_flag
from jaxmetrics._base.checks.values import check_nonnegative as check_nonnegative
from jaxmetrics._base.checks.values import check_number as check_number
from jaxmetrics._base.checks.values import check_reference as check_reference
from jaxmetrics._base.quoting import brief as brief
