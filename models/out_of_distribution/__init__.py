"""Rows unlike training, whatever the model answers for them.

A row is strange in a column of its own (`columns`), or in how its columns go together: tables by
`dependence`, images and texts by `subspace`. Each part answers with a surprise, −log₁₀ of the
probability that a row like those of training is as strange, estimated from training rows alone. A
row's score is its largest surprise (`features`). Its threshold is a rank of the scores of rows
that were held out of all of this, so that the false-alarm rate is that of all parts together.
"""
