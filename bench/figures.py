"""Defines figures. A figure is a measured number with its target. It is a plain dictionary, which compare.py keeps in
docs/benchmarks.json."""


def figure(what, value, target=None, low=False, detail=""):
    """low: the value must be at most the target; otherwise it must be at least the target."""
    return {"what": what, "value": value, "target": target, "low": low, "detail": detail}


def verdict(fig):
    if fig["target"] is None:
        return ""
    return "met" if (fig["value"] <= fig["target"] if fig["low"] else fig["value"] >= fig["target"]) else "missed"


def written(value):
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def percentile(values, part):
    """Returns the smallest value v such that at least this part of the values is v or less."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-int(part * 1000) * len(ordered) // 1000) - 1))]
