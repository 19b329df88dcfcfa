"""Language models: text as tokens, recurrent networks over them, sequences' likelihoods."""
