"""Processes that share a mesh, but not their arrays, are told so before one waits for another."""

from processes import printed


def test_arrays_that_differ_between_processes_are_refused():
    one, other = printed("unlike_worker.py", 2)
    assert one == other
    for name in ("own items", "own values", "own key"):
        assert one[name].startswith("items, or keys, differ between the processes"), one[name]
    for name in ("own start", "own validation"):
        assert one[name].startswith("params, key or data differ"), one[name]
    assert len(one["all items"]) == 24
    assert len(one["one start"]) > 1
    assert one["stopping"] == 1
