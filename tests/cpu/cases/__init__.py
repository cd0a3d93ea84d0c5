"""Field cases: mechanisms that people report, each as a small kernel, its launcher and a sweep.

The numbers in docstrings are the rows of the list of cases; ``test_cases.py`` holds the counts to expect. Where a
row tells several policies apart, they are the compared axis of one sweep. A sweep is named as its row's table calls it.
"""
