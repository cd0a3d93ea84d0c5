"""check: would a server started here find every variant in Triton's cache, and if not, why not?"""

from jitaudit.checking.nouns import Checked, Miss
from jitaudit.checking.rules import NEXT, RULES
from jitaudit.checking.running import check_cache

__all__ = ["NEXT", "RULES", "Checked", "Miss", "check_cache"]
