"""Trained models without the service: `credence.load`, with the answers of `POST /predict`."""
