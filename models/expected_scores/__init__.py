"""The scores to expect on rows whose truth is not known: simulated labels, scored as real ones.

`labels` draws whole sets of labels, `simulation` scores them, `promise` keeps what held-out rows
showed in training, `expectation` says what to expect on new rows, and whether it is as promised.
"""
