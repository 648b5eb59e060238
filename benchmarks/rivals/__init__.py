"""The calls of other libraries, as their documentation recommends; one file per subject.

Tables leave out a rival that is not installed or has no such metric.
"""

from benchmarks.rivals.areas import MAX_FPR as MAX_FPR
from benchmarks.rivals.areas import RIVALS as RIVALS
from benchmarks.rivals.areas import sklearn_calls as sklearn_calls
