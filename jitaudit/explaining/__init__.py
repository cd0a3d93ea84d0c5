"""explain: which argument makes each variant, what to change, what the change leads to, and what it costs."""

from jitaudit.explaining.answering import Question, explain, explain_difference
from jitaudit.explaining.differing import Diff
from jitaudit.explaining.explanation import Explanation, explain_manifest

__all__ = ["Diff", "Explanation", "Question", "explain", "explain_difference", "explain_manifest"]
