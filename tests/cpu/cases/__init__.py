"""Field cases: mechanisms that people report, each as a small kernel, its launcher and a sweep.

The numbers in docstrings are the rows of the list of cases; ``test_cases.py`` holds the counts to expect. Where a
row tells several policies apart, they are the compared axis of one sweep. A sweep is named as its row's table calls it.
"""

NARROWED = {
    "batch": "1..3,16,17",
    "blocks": "1..3",
    "elements": "1,63,64",
    "kilo": "8,9,16,72",
    "length": "7,8193,9216",
    "m": "1..3",
    "numel": "1..4,16,3000",
    "splits": "2,4",
    "tokens": "1,128,129",
}
"""The long axes cut down to values that still reach every kind of key: for tests that compile or write out each one."""
