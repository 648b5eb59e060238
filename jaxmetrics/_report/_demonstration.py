"""The data and the classifiers of the demonstration."""

from __future__ import annotations

import numpy as np

from jaxmetrics._report._problem import Problem
from jaxmetrics._report._settings import Tell


def digits_problem(seed: int, tell: Tell) -> Problem:
    """Scores of three classifiers on scikit-learn's digits: is the digit an 8?"""
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    classifiers = {
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        "random forest": RandomForestClassifier(random_state=seed),
        "nearest neighbours": KNeighborsClassifier(15),
    }
    features, digits = load_digits(return_X_y=True)
    train, test, train_labels, labels = train_test_split(
        features, digits == 8, test_size=0.5, stratify=digits == 8, random_state=seed
    )
    scores = []
    for name, classifier in classifiers.items():
        tell(f"Training {name}")
        scores.append(classifier.fit(train, train_labels).predict_proba(test)[:, 1])
    return Problem(
        "scikit-learn's digits", "is it an 8?", tuple(classifiers), np.stack(scores), labels
    )
