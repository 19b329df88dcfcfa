"""Small networks and their summaries in compiled loops, without Python's lock.

A network with layers of some fifty units is all overhead in torch: sixty operations of a few
microseconds each, where the arithmetic takes twenty. Two kernels replace them.

`kernels.sample` draws the hidden layers by local reparameterisation (`models.prediction.local`),
for sample s and row r

    m¹ = W x + b,  v¹ = V x² + c,      hˡ = f(mˡ + √vˡ εˡ_s),
    mˡ⁺¹ = W hˡ + b,  vˡ⁺¹ = V (hˡ)² + c,

with the means W, b and variances V, c of the weights and the noise ε of the torch path. The
innermost loop runs over pairs of a row and a sample. `kernels.propagate` propagates moments as
`models.prediction.local` does. `kernels.numbers` and `kernels.classes` summarise what follows:
the mean, the parts of the variance or entropy, quantiles by Newton's method, and the Monte-Carlo
error, with the formulas of `models.likelihoods.number_mixture`, `predictive` and `standard_error`.

`shaped_kernels` do the same for mixtures of logistic and normal components on the identity and the
logarithm, with bounds, atoms and whole numbers (`models.likelihoods.number_mixture`). `shapes` says
which likelihoods these are; other scales stay with torch.

Results equal those of torch but for rounding: products, means of units, and what a component of a
shape adds are in float32, sums and other summaries in float64. Layers of more than `MAX_WEIGHTS`
weights (`MAX_FIRST` of the first layer; `models.prediction.fitted`) stay with torch, whose products
of matrices are then faster. `compiler` compiles in the background; until it is ready, and for all
that `backend` does not answer, torch computes the answer.
"""
