"""The ways to placements, each of which a test takes."""

import pytest
from sources_of_placements import cut

from jaxmetrics.inference._influence import host_slopes


@pytest.fixture(params=["whole", "parts"])
def parts(request, monkeypatch):
    if request.param == "parts":
        cut(monkeypatch)


@pytest.fixture(params=["whole", "head"])
def head(request, monkeypatch):
    """Few items, too, are cut to the head that counts, and into parts, as many are."""
    if request.param == "head":
        monkeypatch.setattr(host_slopes, "_FEW", 0)
        monkeypatch.setattr(host_slopes, "_PART", 2)
