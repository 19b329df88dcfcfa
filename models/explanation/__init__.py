"""Why a prediction is what it is: Shapley values of the features, and their importance."""
