"""Decides from paired measurements whether a measure became slower, in ratios later / earlier of its cost.

A pair is the same measure of two versions, taken one right after the other. Its ratio is above 1 where the later version
costs more: more time or memory, or fewer calls in a second.
"""

from math import comb, inf
from statistics import median

LIMIT = 0.03       # a cost that grew by more than this is lost
WIDTH = 0.06       # an interval wider than this decides nothing
CONFIDENCE = 0.95
FEWEST_TURNS = 6   # with fewer pairs no interval of ranks has that confidence


def ratio(before, today, more_is_better=False):
    """Returns what `today` costs in units of what `before` costs; 1 for two equal figures, zeros included."""
    cost_before, cost_today = (today, before) if more_is_better else (before, today)
    if cost_before == cost_today:
        return 1.0
    return cost_today / cost_before if cost_before > 0 else inf


def ranks(count):
    """Returns the ranks (from 1) of the sorted values that enclose the median of what they are drawn from with at least
    95 % confidence, whatever its distribution: the sign test turned round. None for fewer than 6 values."""
    below = 0.0
    low = 0
    while low < count // 2:
        below += comb(count, low) / 2**count
        if 2 * below > 1 - CONFIDENCE:
            break
        low += 1
    return (low, count + 1 - low) if low > 0 else None


def interval(ratios):
    """Returns (low, high): two of the ratios, between which the true median lies with at least 95 % confidence."""
    low, high = ranks(len(ratios))
    ordered = sorted(ratios)
    return ordered[low - 1], ordered[high - 1]


def verdict(low, high):
    """`lost` and `won` need the whole interval beyond 3 %; `same` needs one that is at most 6 % wide."""
    if low > 1 + LIMIT:
        return "lost"
    if high < 1 - LIMIT:
        return "won"
    return "needs more turns" if not high - low <= WIDTH else "same"


def judge(ratios):
    """Returns (median, low, high, verdict) of one measure's ratios; None for fewer than 6."""
    if len(ratios) < FEWEST_TURNS:
        return None
    low, high = interval(ratios)
    return median(ratios), low, high, verdict(low, high)
