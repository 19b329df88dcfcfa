"""Pictures of models and predictions, drawn by matplotlib or plotly, which are optional."""
