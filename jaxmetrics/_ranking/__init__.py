"""Metrics of ranked lists of documents, as rows or as segments."""
