"""The scores to expect on rows whose truth is not known: simulated labels, scored as real ones.

`simulation` draws whole sets of labels and scores them. `expectation` keeps what held-out rows
showed in training, and says what to expect on new rows and whether it is as promised.
`models.tabular.unlabelled` does both for a model of rows.
"""
