"""Confidence intervals for what is estimated from samples: means, shares and quantiles.

Samples may come in clusters (the steps of one user): within a cluster they may depend on each other
in any way, the clusters are independent. Then variances are those between clusters, and multipliers
Student's with one degree of freedom less than there are clusters. Where nothing can be said (one
sample, one cluster) an interval is all that is possible."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Interval = tuple[float, float]


@dataclass(frozen=True)
class Clusters:
    """code: the cluster of each sample, 0..len(sizes)-1; sizes: samples in each, none empty."""

    code: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, code: NDArray[np.int64]) -> "Clusters":
        """From a number >= 0 for each sample; numbers that nobody has are closed up."""
        sizes = np.bincount(code)
        used = sizes > 0
        return cls((np.cumsum(used) - 1)[code], sizes[used])

    def variance_of_mean(self, values: NDArray[np.float64], mean: float) -> float:
        """G/(G-1) sum_g (sum of g's values - mean n_g)^2 / n^2: the linearised variance of a
        ratio of sums."""
        groups, n = len(self.sizes), int(self.sizes.sum())
        off = np.bincount(self.code, weights=values, minlength=groups) - mean * self.sizes
        return groups / (groups - 1) * float(off @ off) / n**2

    @property
    def like(self) -> float:
        """n^2 / sum n_g^2: how many independent samples the clusters are worth if all samples of
        a cluster are the same."""
        return float(self.sizes.sum()) ** 2 / float((self.sizes.astype(np.float64) ** 2).sum())


def _student(level: float, freedom: float) -> float:
    from scipy.special import stdtrit  # here: importing the package must stay light

    return float(stdtrit(freedom, 0.5 + level / 2))


def _normal(level: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(0.5 + level / 2))


def mean_interval(
    values: NDArray[np.float64], level: float, clusters: Clusters | None = None
) -> Interval:
    """Of the mean of values >= 0: mean -+ t standard errors, not below 0."""
    low, high = signed_mean_interval(values, level, clusters)
    return max(low, 0.0), high


def signed_mean_interval(
    values: NDArray[np.float64], level: float, clusters: Clusters | None = None
) -> Interval:
    """Of the mean of values of either sign, such as differences of pairs: mean -+ t standard
    errors."""
    units = len(values) if clusters is None else len(clusters.sizes)
    if units < 2:
        return -math.inf, math.inf
    mean = float(values.mean())
    variance = (
        float(values.var(ddof=1)) / len(values)
        if clusters is None
        else clusters.variance_of_mean(values, mean)
    )
    half = _student(level, units - 1) * math.sqrt(variance)
    return mean - half, mean + half


def difference_interval(a: NDArray[np.float64], b: NDArray[np.float64], level: float) -> Interval:
    """Of the mean of a less the mean of b, two independent samples whose variances may differ:
    Welch's."""
    if min(len(a), len(b)) < 2:
        return -math.inf, math.inf
    first, second = float(a.var(ddof=1)) / len(a), float(b.var(ddof=1)) / len(b)
    difference = float(a.mean() - b.mean())
    if first + second == 0:
        return difference, difference
    freedom = (first + second) ** 2 / (first**2 / (len(a) - 1) + second**2 / (len(b) - 1))
    half = _student(level, freedom) * math.sqrt(first + second)
    return difference - half, difference + half


def column_means(
    values: NDArray[np.float64], level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """(mean, t standard errors, how many) of each column; NaN entries are not there."""
    from scipy.special import stdtrit

    seen = ~np.isnan(values)
    n = seen.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(seen, values, 0.0).sum(axis=0) / n
        off = np.where(seen, values - mean, 0.0)
        half = stdtrit(n - 1, 0.5 + level / 2) * np.sqrt((off**2).sum(axis=0) / (n - 1) / n)
    return mean, np.where(n < 2, np.inf, half), n


def mean_bands(
    values: NDArray[np.float64], level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """(mean, low, high, how many) of each column of values >= 0, as ``mean_interval``; NaN
    entries are not there."""
    mean, half, n = column_means(values, level)
    return mean, np.maximum(mean - half, 0.0), mean + half, n


def _effective_size(hits: NDArray[np.float64], clusters: Clusters) -> float:
    """How many independent samples would give the share of hits the variance that the clusters
    give it."""
    n, share = len(hits), float(hits.mean())
    if not 0 < share < 1:  # the samples do not say how alike a cluster's are: assume the worst
        return clusters.like
    variance = clusters.variance_of_mean(hits, share)
    return min(float(n), share * (1 - share) / variance) if variance > 0 else float(n)


def share_interval(
    hits: NDArray[np.bool_], level: float, clusters: Clusters | None = None
) -> Interval:
    """Of a probability, from hits and misses: Wilson's.

    With clusters, of as many samples as they are worth.
    """
    share = float(hits.mean())
    if clusters is None:
        return wilson(share, len(hits), _normal(level))
    if len(clusters.sizes) < 2:
        return 0.0, 1.0
    return wilson(
        share,
        _effective_size(hits.astype(np.float64), clusters),
        _student(level, len(clusters.sizes) - 1),
    )


def wilson(share: float, n: float, z: float) -> Interval:
    """The p with |share - p| <= z sqrt(p (1 - p) / n)."""
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, min(middle - half, share)), min(1.0, max(middle + half, share))


def quantile_rank(n: int, q: float) -> int:
    """Place (from 0) in n sorted samples of the smallest value that a share of q of them does
    not exceed."""
    # n q rounds: 0.9 * 10 is no more than 9
    return min(max(math.ceil(n * q * (1 - 2.0**-50)) - 1, 0), n - 1)


def quantile_interval(
    ordered: NDArray[np.float64],
    q: float,
    level: float,
    clusters: Clusters | None = None,
    values: NDArray[np.float64] | None = None,
) -> Interval:
    """Of the q-quantile of values >= 0, between two of the sorted samples; 0 and inf where there
    are too few.

    Independent samples: the number not above the quantile is at least Binomial(n, q), that below it
    at most, whatever the distribution, with or without ties. With clusters (``values`` are the
    samples in the clusters' order): that number's share is taken as normal, with the variance of q
    (1 - q) over the effective size at the estimate (Woodruff's interval)."""
    n = len(ordered)
    if clusters is None:
        # ranks count from 1; 0 and n + 1 are beyond the samples
        low = binomial_quantile(n, q, (1 - level) / 2)
        high = binomial_quantile(n, q, (1 + level) / 2) + 1
    else:
        if len(clusters.sizes) < 2:
            return 0.0, math.inf
        assert values is not None
        size = _effective_size(
            (values <= ordered[quantile_rank(n, q)]).astype(np.float64), clusters
        )
        half = _student(level, len(clusters.sizes) - 1) * math.sqrt(q * (1 - q) / size)
        low = math.floor(n * (q - half)) + 1 if q >= half else 0
        high = min(math.ceil(n * (q + half)), n + 1)
    return (float(ordered[low - 1]) if low > 0 else 0.0), (
        float(ordered[high - 1]) if high <= n else math.inf
    )


def binomial_quantile(n: int, q: float, p: float) -> int:
    """The smallest k with Pr(Binomial(n, q) <= k) >= p."""
    from scipy.special import bdtr

    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if bdtr(middle, n, q) >= p:
            high = middle
        else:
            low = middle + 1
    return low


def clopper_pearson(hits: int, n: int, level: float) -> Interval:
    """Of a probability, from hits out of n: each end is wrong with probability at most 1 - level.

    Exact, by inverting the binomial distribution (Clopper and Pearson, Biometrika 1934)."""
    from scipy.special import betaincinv

    low = float(betaincinv(hits, n - hits + 1, 1 - level)) if hits else 0.0
    high = float(betaincinv(hits + 1, n - hits, level)) if hits < n else 1.0
    return low, high
