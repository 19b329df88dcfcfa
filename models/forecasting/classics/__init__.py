"""Classical models of one series, as Bayesian members beside the network: smoothing, autoregression."""
