"""PromQL that several panels share. Counters are summed over replicas first."""

MODEL = 'model=~"$model"'


def rate(selector: str, by: str = "") -> str:
    """The rate per second, over all replicas."""
    grouped = f"sum by ({by})" if by else "sum"
    return f"{grouped} (rate({selector}[$__rate_interval]))"


def increase(selector: str, by: str) -> str:
    """The count in each interval, over all replicas."""
    return f"sum by ({by}) (increase({selector}[$__rate_interval]))"


def ratio(part: str, whole: str) -> str:
    """The rate of a part divided by that of the whole; 0 if the whole is 0."""
    return f"(({rate(part)}) or vector(0)) / ({rate(whole)} > 0) or vector(0)"


def mean(histogram: str, by: str = "", labels: str = "") -> str:
    """The mean of a histogram's values."""
    return f"{rate(f'{histogram}_sum{labels}', by)} / {rate(f'{histogram}_count{labels}', by)}"


def quantile(q: float, bucket: str, by: str = "") -> str:
    """A quantile of a histogram."""
    return f"histogram_quantile({q}, {rate(bucket, f'{by}, le' if by else 'le')})"
