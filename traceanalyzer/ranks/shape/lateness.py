"""Whether ranks wait for one that is late in step after step, for what happened once, or for jitter, for which no rank is to blame.

Occasions are the steps of each group of ranks that meet in collectives. If lateness is noise, each of n ranks is as likely as the next
to cause most waiting of an occasion, so that one of them does in k of S by chance with at most n P(B >= k), B binomial (S, 1/n). Where
it is the same one in all of them, how even the amounts are tells more: of S independent exponential amounts with mean m the least is
c m or more with probability (1 - c)^(S - 1) (order statistics; David and Nagaraja, Order Statistics, 2003, section 2.5), and then that
and being the same rank have the probability ((1 - c) / n)^(S - 1). A step of which the recording lacks a part must not spoil that: what
the others have more than the least is spread as evenly by chance, so the smaller probability counts, doubled.
"""

from __future__ import annotations

from math import comb, exp, log

import numpy as np

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.columns.grouped import Groups
from traceanalyzer.intervals import Array
from traceanalyzer.records import dataclass

PERSISTENT, RARE, JITTER = "persistent", "rare", "jitter"
PATTERNS = (PERSISTENT, RARE, JITTER)
CHANCE, DOUBT = 0.05, 0.15
"""A pattern that chance makes more often than the first is not told, and more often than the second, none."""
FEWEST = 3
"""Of fewer occasions nobody can say that chance made them."""
OUTLIER, TIMES = 3.5, 10
"""What stands out: the usual bound of the modified z-score (Iglewicz and Hoaglin), and so many times the median."""
_TO_DEVIATIONS = 0.6745
_MIX = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
"""Steele, Lea and Flood's SplitMix64 (OOPSLA 2014), by which sets of GPUs are told apart."""
_EXACT = 200
"""Of more occasions the tail of the binomial distribution is bounded as Chernoff does."""


@dataclass(frozen=True)
class Late:
    """One GPU that is late in occasion after occasion of a group: its code, in how many it causes most waiting, of how many, and the
    probability that chance makes so clear a pattern in any of the groups."""

    gpu: int
    led: int
    occasions: int
    chance: float


@dataclass(frozen=True)
class Patterns:
    """`pattern` of each row: a position in PATTERNS, `NULL` where it is not told. `late` are the GPUs that are persistently late, the
    surest first; `occasions` is how many the group has that has most."""

    pattern: Array
    late: list[Late]
    occasions: int


def patterns(instance: Array, step: Array, gpu: Array, late_gpu: Array, exposed: Array) -> Patterns:
    """Given columns with a row for each part of a collective: the collective (`NULL` for what must not count), the step that launched
    it (`NULL` for none), codes of its GPU and of the one that is to blame, and its exposed wait in ns.

    Where no collective has a step, each is an occasion of its own.
    """
    pattern = np.full(len(instance), NULL)
    rows = np.flatnonzero((instance != NULL) & (late_gpu != NULL))
    if not len(rows):
        return Patterns(pattern, [], 0)
    of = Groups(instance[rows])
    stepped = of.max(step[rows])
    occasion = stepped if (stepped != NULL).any() else np.arange(len(of))
    late, waited = late_gpu[rows][of.first], of.sum(np.maximum(exposed[rows], 0))
    sizes, told = of.distinct(gpu[rows]), np.full(len(of), NULL)
    groups = [mine for _, mine in frames.together(frames.dense(_sets(of, gpu[rows])))]
    found: list[Late] = []
    most = 0
    for mine in groups:
        timed, rest = (mine[which] for which in (occasion[mine] != NULL, occasion[mine] == NULL))
        if not len(timed):
            continue
        group = _Group.of(occasion[timed], late[timed], waited[timed], int(sizes[mine[0]]))
        always = group.persistent(len(groups))
        gpus = [one.gpu for one in always]
        told[timed] = np.where(group.rare[group.at], PATTERNS.index(RARE), group.others(len(groups)))
        # What was launched before the steps that were recorded belongs to none of them.
        for part in (timed[~group.rare[group.at]], rest):
            told[part[np.isin(late[part], gpus)]] = PATTERNS.index(PERSISTENT)
        found += always
        most = max(most, len(group.rare))
    pattern[rows] = told[of.of]
    return Patterns(pattern, sorted(found, key=lambda one: (one.chance, one.gpu)), most)


@dataclass(frozen=True)
class _Group:
    """The occasions of a group of `size`: the waiting in each that each of `gpus` causes, the occasion of each collective, and which
    occasions stand out."""

    gpus: Array
    caused: Array
    at: Array
    rare: frames.Flags
    size: int

    @classmethod
    def of(cls, occasion: Array, late: Array, waited: Array, size: int) -> _Group:
        occasions, at = np.unique(occasion, return_inverse=True)
        gpus, who = np.unique(late, return_inverse=True)
        caused = np.zeros((len(occasions), len(gpus)), np.int64)
        np.add.at(caused, (at, who), waited)
        return cls(gpus, caused, at, _standing_out(caused.sum(axis=1)), max(size, 2))

    def persistent(self, groups: int) -> list[Late]:
        """Those that are late too often, or too evenly, for chance; in any of so many groups."""
        usual, led = self._led()
        found = [
            Late(gpu, count, usual, min(groups * self._chance(place, count, usual), 1.0))
            for place, (gpu, count) in enumerate(zip(self.gpus.tolist(), led.tolist(), strict=True))
            if count
        ]
        return [one for one in found if one.chance < CHANCE]

    def others(self, groups: int) -> int:
        """What the rest is: jitter, or not told where occasions are few, or where one GPU causes all of them nearly too evenly."""
        usual, led = self._led()
        top = int(led.argmax())
        if usual < FEWEST:
            return NULL
        doubtful = led[top] >= usual - 1 and groups * self._chance(top, int(led[top]), usual) < DOUBT
        return NULL if doubtful else PATTERNS.index(JITTER)

    def _led(self) -> tuple[int, Array]:
        """How many occasions do not stand out, and of how many each GPU causes most."""
        usual = self.caused[~self.rare]
        waited = usual.sum(axis=1) > 0
        return len(usual), np.bincount(usual[waited].argmax(axis=1), minlength=len(self.gpus))

    def _chance(self, place: int, led: int, usual: int) -> float:
        """Of one that causes most waiting in so many of the usual occasions: the probability of the likeliest reading of it."""
        caused = self.caused[~self.rare]
        least = int(caused.sum(axis=1).argmin())
        rest = np.delete(caused, least, axis=0)
        ways = [self.size * _tail(led, usual, 1 / self.size)]
        if led == usual:
            ways.append(self._always(caused[:, place]))
        if usual > FEWEST and bool((rest.argmax(axis=1) == place).all()) and rest[:, place].all():
            ways.append(self._always(np.maximum(rest[:, place] - caused[least].sum(), 0)))
        return min(min(ways) * max(len(ways) - 1, 1), 1.0)

    def _always(self, amounts: Array) -> float:
        """The probability that chance makes one of the ranks cause all occasions, and these amounts of waiting as even as they are."""
        mean = float(amounts.mean())
        even = float(amounts.min()) / mean if mean else 0.0
        return float(((1 - even) / self.size) ** (len(amounts) - 1))


def _standing_out(waited: Array) -> frames.Flags:
    """Occasions with so much more waiting than the others that something happened in them."""
    if len(waited) < FEWEST:
        return np.zeros(len(waited), bool)
    middle = np.median(waited)
    deviation = max(float(np.median(np.abs(waited - middle))), 0.01 * float(middle), 1.0)
    out: frames.Flags = (_TO_DEVIATIONS * (waited - middle) / deviation > OUTLIER) & (waited >= TIMES * middle)
    return out


def _tail(least: int, trials: int, chance: float) -> float:
    """The probability of at least so many successes; of many trials, at most that."""
    if trials <= _EXACT:
        return sum(comb(trials, n) * chance**n * (1 - chance) ** (trials - n) for n in range(least, trials + 1))
    share = least / trials
    if share <= chance:
        return 1.0
    rest = (1 - share) * log((1 - share) / (1 - chance)) if share < 1 else 0.0
    return exp(-trials * (share * log(share / chance) + rest))


def _sets(of: Groups, gpu: Array) -> Array:
    """A number for each collective that those of the same GPUs share."""
    mixed = gpu.astype(np.uint64) + np.uint64(_MIX[0])
    with np.errstate(over="ignore"):
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(_MIX[1])
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(_MIX[2])
        mixed ^= mixed >> np.uint64(31)
        return of.sum(mixed.view(np.int64))
