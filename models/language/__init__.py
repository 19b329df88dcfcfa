"""Language models: recurrent networks that predict the next token of a text."""
