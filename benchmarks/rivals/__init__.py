"""What a user would call instead, as each library's own documentation says, a file a subject.

A rival that is not installed, or that has no such metric, is left out of a table.
"""

from benchmarks.rivals.areas import MAX_FPR as MAX_FPR
from benchmarks.rivals.areas import RIVALS as RIVALS
from benchmarks.rivals.areas import sklearn_calls as sklearn_calls
