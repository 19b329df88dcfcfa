"""Laplace approximations: a Gaussian around a MAP fit, with the curvature there as its precision.

    P(w | D) ≈ N(ŵ, (H + δI)⁻¹),  H = Σ_i c_i J_iᵀ F_i J_i,  δ = 1/σ²

J_i are the derivatives of the outputs of row i in the weights, F_i is the Fisher information of the
likelihood in the outputs, c_i the weight of the row: the generalised Gauss–Newton matrix. The
prior's σ maximises the marginal likelihood (`evidence`).
Source: Daxberger et al. 2021 (arXiv 2106.14806); Immer et al. 2021 (arXiv 2008.08217, 2104.04975).
"""
