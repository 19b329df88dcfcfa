"""Compiled loops of mixtures with a shape, as `models.likelihoods.number_mixture` computes them.

A row has `components · samples` components, one after the other in every array; those of one number
k are neighbours. Each is a location-scale family on z. Locations and scales are float64; densities
and distribution functions of the logistic are float32 with all digits of small tails, which moves
an answer by some 1e-7 of a standard deviation.
"""

import math

import numpy as np

from models.prediction.compiled.elementary import (
    DENSITY,
    HALF,
    ONE,
    TWO,
    ZERO,
    error_of_mean,
    exp,
    exp32,
    expm132,
    jit,
    mean_and_variance,
    upper_tail,
)

LOGISTIC, NORMAL = range(2)
IDENTITY, LOG = range(2)

_K = np.float32(2 * math.pi)  # of t = k v ÷ (1 − v²): `models.likelihoods.components`
_TWO_OF_K = 1 / math.pi
_LARGEST = 600.0  # of exponents: `models.features.scales`
_BLOCKS = 4  # of samples, which start with the quantiles of their common moments
_LEAST = 1e-300
_GONE = 30.0  # scales, beyond which a sum of tails has no digits left
_FAR = 1e3  # scales, beyond which nothing is
_LOGISTIC_DEVIATION = math.pi / math.sqrt(3)
_SMALLEST = 1e-12  # probability below which a quantile is the end of the support
_MAX_STEPS, _FREE_STEPS = 150, 8  # as `models.likelihoods.quantiles`
_NARROW = 1e-9  # of a bracket, in deviations
_ROUGH, _CLOSE = 0.1, 1e-3  # where Halley's method ends: for a start, and at last


@jit
def tail_of(family, t):
    """P(T > t), t ≥ 0, in float32."""
    if family == LOGISTIC:
        e = exp32(-t)
        return e / (ONE + e)
    x = np.float64(t)
    return np.float32(upper_tail(x, exp(-0.5 * x * x)))


@jit
def bounded(x, bounds):
    """`models.likelihoods.shaped.Bounded` of each value: itself between the knees."""
    low_limit, low, high, high_limit = bounds
    below, above = low - low_limit, high_limit - high
    least, most = x[0], x[0]
    for p in range(len(x)):
        least, most = min(least, x[p]), max(most, x[p])
    if least >= low and most <= high:
        return
    for p in range(len(x)):
        v = x[p]
        a = (v - low) / below if v < low else (v - high) / above
        e = exp(-2 * abs(a))
        size = (1 - e) / (1 + e)
        x[p] = low - below * size if v < low else (high + above * size if v > high else v)


@jit
def softmax(logits, highest, total):
    """Replace logits [numbers, samples] by probabilities; the others are to work in."""
    highest[:] = logits[0]
    total[:] = 0
    for k in range(1, len(logits)):
        for s in range(len(highest)):
            highest[s] = max(highest[s], logits[k, s])
    for k in range(len(logits)):
        for s in range(len(highest)):
            logits[k, s] = exp(logits[k, s] - highest[s])
            total[s] += logits[k, s]
    for k in range(len(logits)):
        for s in range(len(highest)):
            logits[k, s] /= total[s]


@jit
def parts(out, noise, owner, row, likelihood, locs, scales, weights, atoms, drawn):
    """Components and atoms of each sample (`models.likelihoods.shaped.ShapedLikelihood.parts`).

    Args:
        likelihood: the components' first locations, their first log-scale, the first log odds of
            an atom, and the bounds of locations and log-scales.
        locs, scales, weights: [components, samples].
        atoms: probabilities of no atom, then of each [1 + atoms, samples].
        drawn: a buffer of the outputs [outputs, samples].
    """
    starts, start_scale, start_atom, of_locs, of_scales = likelihood
    number, count, outputs = len(starts), len(owner), out.shape[1]
    first_atom = outputs - len(atoms) + 1
    for o in range(outputs):
        values, normals = drawn[o], noise[o]
        for s in range(count):
            c = owner[s]
            m, v = np.float64(out[0, o, row, c]), np.float64(out[1, o, row, c])
            values[s] = m + math.sqrt(v) * normals[s]
    for k in range(number):
        for s in range(count):
            locs[k, s] = drawn[k, s] + starts[k]
            scales[k, s] = drawn[number + k, s] + start_scale
        bounded(locs[k], of_locs)
        bounded(scales[k], of_scales)
        for s in range(count):
            scales[k, s] = exp(scales[k, s])
    highest, total = drawn[0], drawn[1]  # locations and log-scales have been read
    atoms[0] = 0
    for a in range(1, len(atoms)):
        for s in range(count):
            atoms[a, s] = drawn[first_atom + a - 1, s] + start_atom
    softmax(atoms, highest, total)
    if number == 1:
        weights[0] = atoms[0]
        return
    for k in range(number):
        weights[k] = drawn[2 * number + k]
    softmax(weights, highest, total)
    for k in range(number):
        for s in range(count):
            weights[k, s] *= atoms[0, s]


@jit
def scale_by(locs, scales, weights, root, low, high):
    """Multiply deviations from the mean on z by the root (`NumberMixture.scaled`)."""
    total, centre = 0.0, 0.0
    for p in range(len(locs)):
        total += weights[p]
        centre += weights[p] * locs[p]
    centre /= total
    for p in range(len(locs)):
        locs[p] = min(max(centre + root * (locs[p] - centre), low), high)
        scales[p] *= root


@jit
def sum_whole(family, locs, scales, edges, means, variances, work):
    """Means and variances of whole numbers, of the lowest one as 0, by sums of tails.

    With the number c that holds the location, E(Y − c) = Σ_{k ≥ c} P(Y > k) − Σ_{k < c} P(Y ≤ k),
    and E(Y − c)² = Σ_{k ≥ c} (2(k − c) + 1) P(Y > k) + Σ_{k < c} (2(c − k) − 1) P(Y ≤ k): sums
    about c have more digits than those about 0.

    Args:
        edges: on z, halfway between successive numbers.
        work: buffers [6, components] of float32.
    """
    rates, own, first, second, t, tail = work[0], work[1], work[2], work[3], work[4], work[5]
    least, most, widest = locs[0], locs[0], 0.0
    for p in range(len(locs)):
        rates[p] = 1 / scales[p]
        least, most, widest = min(least, locs[p]), max(most, locs[p]), max(widest, scales[p])
        own[p], first[p], second[p] = ZERO, ZERO, ZERO
    for e in range(len(edges)):
        edge = edges[e]
        for p in range(len(locs)):
            own[p] += ONE if edge < locs[p] else ZERO
    for number in range(len(edges)):
        edge, middle = edges[number], np.float32(number + 0.5)
        if edge < least - _GONE * widest or edge > most + _GONE * widest:
            continue
        for p in range(len(locs)):
            t[p] = np.float32(edge - locs[p]) * rates[p]
        if family == LOGISTIC:
            for p in range(len(locs)):
                e = exp32(-abs(t[p]))
                tail[p] = e / (ONE + e)
        else:
            for p in range(len(locs)):
                tail[p] = tail_of(family, abs(t[p]))
        for p in range(len(locs)):
            first[p] += -tail[p] if t[p] < ZERO else tail[p]
        for p in range(len(locs)):
            second[p] += TWO * abs(middle - own[p]) * tail[p]
    for p in range(len(locs)):
        mean = np.float64(first[p])
        means[p] = own[p] + mean
        variances[p] = max(second[p] - mean * mean, 0.0)


@jit
def integrate(family, locs, scales, target, nodes, means, variances, work):
    """Means and variances of values between the ends, by Gauss–Legendre in t = k v ÷ (1 − v²).

    As `models.likelihoods.components`, with distances from the value at the location: of the
    identity t times the scale, of the logarithm exp(t · scale) − 1, times the value.

    Args:
        nodes: nodes and weights on [−1, 1], of float32.
        work: buffers [9, components] of float32.
    """
    kind, mean, std, shift, low, high, cut_low, cut_high, reach = target
    t, share, centre, half, unit = work[0], work[1], work[2], work[3], work[4]
    mass, first, second, bottom = work[5], work[6], work[7], work[8]
    for p in range(len(locs)):
        lowest = min(max((low - locs[p]) / scales[p], -reach), reach)
        highest = min(max((high - locs[p]) / scales[p], -reach), reach)
        below, above = lowest * _TWO_OF_K, highest * _TWO_OF_K
        start = below / (1 + math.sqrt(1 + below * below))
        stop = above / (1 + math.sqrt(1 + above * above))
        centre[p], half[p] = 0.5 * (start + stop), 0.5 * (stop - start)
        unit[p] = scales[p] * std
        mass[p], first[p], second[p] = ZERO, ZERO, ZERO
        bottom[p], means[p] = lowest, highest
    for n in range(nodes.shape[1]):
        node, weight = nodes[0, n], nodes[1, n]
        for p in range(len(locs)):
            v = centre[p] + half[p] * node
            r = ONE / (ONE - v * v)
            t[p] = _K * v * r
            share[p] = _K * weight * (TWO * r * r - r)
        if family == LOGISTIC:
            for p in range(len(locs)):
                e = exp32(-abs(t[p]))
                q = ONE / (ONE + e)
                share[p] *= e * q * q
        else:
            for p in range(len(locs)):
                share[p] *= np.float32(DENSITY) * exp32(-HALF * t[p] * t[p])
        if kind == LOG:
            for p in range(len(locs)):
                t[p] = expm132(unit[p] * t[p])
        # Loops of few arrays: of more LLVM does not find out whether they overlap.
        for p in range(len(locs)):
            mass[p] += share[p]
        for p in range(len(locs)):
            share[p] *= t[p]
        for p in range(len(locs)):
            first[p] += share[p]
        for p in range(len(locs)):
            second[p] += share[p] * t[p]
    for p in range(len(locs)):
        mass[p], first[p], second[p] = half[p] * mass[p], half[p] * first[p], half[p] * second[p]
    for is_low in (True, False):
        if cut_low if is_low else cut_high:
            continue
        for p in range(len(locs)):
            end = bottom[p] if is_low else np.float32(means[p])
            tail = tail_of(family, abs(end))
            beyond = tail if (end < ZERO) == is_low else ONE - tail
            d = expm132(unit[p] * end) if kind == LOG else end
            mass[p] += beyond
            first[p] += beyond * d
            second[p] += beyond * d * d
    for p in range(len(locs)):
        inner, factor, base = locs[p] * std + mean, np.float64(unit[p]), 0.0
        if kind == LOG:
            factor = exp(min(inner, _LARGEST))
            base = factor + shift
        else:
            base = inner
        centred = np.float64(first[p]) / mass[p]
        means[p] = base + factor * centred
        spread = np.float64(second[p]) / mass[p] - centred * centred
        variances[p] = factor * factor * max(spread, 0.0)


@jit
def _moments(family, locs, scales, target, nodes, edges, is_closed, means, variances, work):
    """Mean and variance of each component on y (`component_moments`)."""
    if is_closed:
        _, mean, std = target[:3]
        unit = math.pi * math.pi / 3 if family == LOGISTIC else 1.0
        for p in range(len(locs)):
            means[p] = mean + std * locs[p]
            variances[p] = unit * (std * scales[p]) ** 2
    elif len(edges):
        sum_whole(family, locs, scales, edges[1:], means, variances, work)
        for p in range(len(locs)):
            means[p] += edges[0]
    else:
        integrate(family, locs, scales, target, nodes, means, variances, work)


@jit
def shaped(
    out, noise, owner, family, likelihood, factor, target, nodes, edges, is_closed, atom_values,
    errors, found, locs, scales, weights, atoms,
):  # fmt: skip
    """Components of each row's calibrated mixture, and its mean, variances and error.

    Args:
        out, noise, owner, errors: as of `kernels.numbers`.
        likelihood: as of `parts`.
        factor: of the calibration, on variances on z.
        target: the scale's number, mean and deviation on it, what is added to an exponential, the
            ends on z, whether each cuts the distribution off, and the family's reach.
        nodes: as of `integrate`.
        edges: the lowest whole number, then as of `sum_whole`; empty if nothing is summed.
        is_closed: whether moments need no integral.
        found: mean, aleatoric and epistemic variance, error [4, rows].
        locs, scales, weights: [rows, components, samples], to fill.
        atoms: [rows, 1 + atoms, samples], to fill: of no atom, then of each.

    Returns:
        Whether all is finite.
    """
    count, number, outputs = len(owner), locs.shape[1], out.shape[1]
    starts, firsts, owners, size, shares = errors
    low, high = likelihood[3][0], likelihood[3][3]
    drawn = np.empty((outputs, count))
    means, variances = np.empty((number, count)), np.empty((number, count))
    work = np.empty((9, number * count), np.float32)
    centres, blocks, root = np.empty(count), np.empty(len(firsts)), math.sqrt(factor)
    for r in range(len(locs)):
        parts(
            out, noise, owner, r, likelihood, locs[r], scales[r], weights[r], atoms[r], drawn
        )  # fmt: skip
        flat_locs, flat_scales = locs[r].reshape(-1), scales[r].reshape(-1)
        scale_by(flat_locs, flat_scales, weights[r].reshape(-1), root, low, high)
        _moments(
            family, flat_locs, flat_scales, target, nodes, edges, is_closed, means.reshape(-1),
            variances.reshape(-1), work,
        )  # fmt: skip
        centres[:] = 0
        for k in range(number):
            for s in range(count):
                centres[s] += weights[r, k, s] * means[k, s]
        for a in range(len(atom_values)):
            for s in range(count):
                centres[s] += atoms[r, a + 1, s] * atom_values[a]
        noisy = 0.0
        for k in range(number):
            for s in range(count):
                spread = variances[k, s] + (means[k, s] - centres[s]) ** 2
                noisy += weights[r, k, s] * spread
        for a in range(len(atom_values)):
            for s in range(count):
                noisy += atoms[r, a + 1, s] * (atom_values[a] - centres[s]) ** 2
        mean, between = mean_and_variance(centres)
        found[0, r], found[1, r], found[2, r] = mean, noisy / count, between
        if not math.isfinite(mean + noisy + between):
            return False
        found[3, r] = 0.0
        if count > 1:
            found[3, r] = error_of_mean(centres, starts, firsts, owners, size, shares, blocks)
    return True


@jit
def probability(family, locs, rates, weights, z, sign):
    """Σ w F(x), x = sign · (z − loc) · rate, and its first two derivatives by sign · z."""
    if family == LOGISTIC:
        value, density, slope = ZERO, ZERO, ZERO
        flip = np.float32(sign)
        for p in range(len(locs)):
            x = flip * np.float32(z - locs[p]) * rates[p]
            e = exp32(-abs(x))
            q = ONE / (ONE + e)
            below = q if x > ZERO else e * q
            each = weights[p] * rates[p] * e * q * q
            value += weights[p] * below
            density += each
            slope += each * rates[p] * (ONE - TWO * below)
        return np.float64(value), np.float64(density), np.float64(slope)
    total, height, bend = 0.0, 0.0, 0.0
    for p in range(len(locs)):
        rate = np.float64(rates[p])
        x = sign * (z - locs[p]) * rate
        e = exp(-0.5 * x * x)
        tail = upper_tail(x, e)
        each = weights[p] * rate * DENSITY * e
        total += weights[p] * (1 - tail if x > 0 else tail)
        height += each
        bend -= each * rate * x
    return total, height, bend


@jit
def solve(family, locs, rates, weights, offsets, mass, q, start, low, high, deviation, close):
    """z with (Σ w F − offset) ÷ mass = q, by Halley's method for the logit, within a bracket.

    Above the median the equation is that of the upper tail. Steps converge with the third order: an
    error of 1e-3 becomes one of some 1e-9.

    Args:
        offsets: Σ w F at the lower bound, Σ w (1 − F) at the upper one.
        close: error of the logit, and step in deviations, after which it ends.
    """
    sign, offset, tail = (1.0, offsets[0], q) if q <= 0.5 else (-1.0, offsets[1], 1 - q)
    wanted, z = math.log(tail / (1 - tail)), min(max(start, low), high)
    for number in range(_MAX_STEPS):
        value, density, slope = probability(family, locs, rates, weights, z, sign)
        known = (value - offset) / mass
        p = min(max(known, _LEAST), 1 - 1e-15)
        if (p < tail) == (sign > 0):
            low = z
        else:
            high = z
        density = max(density, _LEAST)
        rate = density / (mass * p * (1 - p))
        gap = math.log(p / (1 - p)) - wanted
        step = gap / rate
        curved = 1 - 0.5 * step * (slope / density - rate * (1 - 2 * p))
        moved = z - sign * step / min(max(curved, 0.5), 2.0)
        is_inside = p == known and low <= moved <= high
        if is_inside and abs(gap) <= close and abs(moved - z) <= close * deviation:
            return moved
        if not is_inside or (number > _FREE_STEPS and number % 2):
            moved = 0.5 * (low + high)
        z = moved
        if high - low <= _NARROW * deviation:
            break
    return z


@jit
def merge(locs, scales, shares, variance, few_locs, few_rates, few_shares):
    """A sample for each block of samples, with the mean and the variance of its components."""
    number, count = locs.shape
    size = count // _BLOCKS
    for k in range(number):
        for b in range(_BLOCKS):
            total, centre, spread = _LEAST, 0.0, 0.0
            for s in range(b * size, (b + 1) * size):
                total += shares[k, s]
                centre += shares[k, s] * locs[k, s]
            centre /= total
            for s in range(b * size, (b + 1) * size):
                far = locs[k, s] - centre
                spread += shares[k, s] * (scales[k, s] * scales[k, s] + far * far / variance)
            p = k * _BLOCKS + b
            few_locs[p], few_shares[p] = centre, total
            few_rates[p] = math.sqrt(total / max(spread, _LEAST))


@jit
def beyond(family, locs, rates, shares, bounds, offsets):
    """Add Σ share F below the lower bound and above the upper one; returns Σ share of the rest.

    An infinite bound has nothing beyond it.
    """
    left = 0.0
    for p in range(len(locs)):
        under, over = ends_of(family, locs[p], rates[p], bounds)
        offsets[0] += shares[p] * under
        offsets[1] += shares[p] * over
        left += shares[p] * (ONE - under - over)
    return left


@jit
def ends_of(family, loc, rate, bounds):
    """F at the lower bound, and 1 − F at the upper one."""
    t_low = min(max((bounds[0] - loc) * rate, -_FAR), _FAR)
    t_high = min(max((bounds[1] - loc) * rate, -_FAR), _FAR)
    below, above = tail_of(family, np.float32(abs(t_low))), tail_of(family, np.float32(abs(t_high)))
    return below if t_low < 0 else ONE - below, above if t_high > 0 else ONE - above


@jit
def reach_of(family, q):
    """t above which a component has less than a quarter of the smaller tail of q."""
    tail = 0.25 * min(q, 1 - q)
    return math.log((1 - tail) / tail) if family == LOGISTIC else math.sqrt(-2 * math.log(tail))


@jit
def quantiles(family, locs, scales, weights, atoms, bounds, cuts, levels, target, ends, found):
    """Quantiles of mixtures with a shape, as `NumberMixture.quantiles_at`.

    Args:
        locs, scales, weights, atoms: as `shaped` fills them.
        bounds: of the support on z, infinite where nothing is cut off.
        cuts: of each atom its value, z just below it, and P(Y < atom) where it follows from the
            support, else NaN [atoms, 3].
        levels: [levels, rows].
        target: as of `shaped`.
        ends: the support in y, and whether only whole numbers are.
        found: [levels, rows], to fill.
    """
    rows, number, count = locs.shape
    total, merged = number * count, number * _BLOCKS
    variance = math.pi * math.pi / 3 if family == LOGISTIC else 1.0
    is_cut = bounds[0] > -np.inf or bounds[1] < np.inf
    kind, mean, std, shift = target[:4]
    all_rates, all_shares = np.empty(total, np.float32), np.empty((number, count), np.float32)
    few_locs, few_rates = np.empty(merged), np.empty(merged, np.float32)
    few_shares = np.empty(merged, np.float32)
    offsets, few_offsets = np.zeros(2), np.zeros(2)
    below, chance = np.empty(len(cuts)), np.empty(len(cuts))
    shares = all_shares.reshape(-1)
    for r in range(rows):
        row_locs, row_scales = locs[r].reshape(-1), scales[r].reshape(-1)
        row_weights = weights[r].reshape(-1)
        mass, centre, spread, widest = 0.0, 0.0, 0.0, 0.0
        first, last = row_locs[0], row_locs[0]
        for p in range(total):
            mass += row_weights[p]
            centre += row_weights[p] * row_locs[p]
            widest = max(widest, row_scales[p])
            first, last = min(first, row_locs[p]), max(last, row_locs[p])
            all_rates[p] = 1 / row_scales[p]
            shares[p] = row_weights[p] / count
        centre /= mass
        for p in range(total):
            far = row_locs[p] - centre
            spread += row_weights[p] * (variance * row_scales[p] * row_scales[p] + far * far)
        deviation = math.sqrt(spread / mass)
        mass /= count
        offsets[:], few_offsets[:], few_mass = 0, 0, mass
        if is_cut:
            for p in range(total):
                under, over = ends_of(family, row_locs[p], all_rates[p], bounds)
                shares[p] /= max(ONE - under - over, np.float32(1e-12))
            beyond(family, row_locs, all_rates, shares, bounds, offsets)
        if count >= 2 * _BLOCKS:
            merge(locs[r], scales[r], all_shares, variance, few_locs, few_rates, few_shares)
            few_mass = beyond(family, few_locs, few_rates, few_shares, bounds, few_offsets)
        for a in range(len(cuts)):
            chance[a] = mean_and_variance(atoms[r, a + 1])[0]
            below[a] = cuts[a, 2]
            if math.isnan(cuts[a, 2]):
                value = probability(family, row_locs, all_rates, shares, cuts[a, 1], 1.0)[0]
                below[a] = value - offsets[0]
                for b in range(a):
                    below[a] += chance[b]
        for k in range(len(levels)):
            level, rest, y = levels[k, r], levels[k, r], np.nan
            for a in range(len(cuts)):
                if level > below[a] + chance[a]:
                    rest -= chance[a]
                elif level > below[a]:
                    y = cuts[a, 0]
            if not math.isnan(y):
                found[k, r] = y
                continue
            q = rest / mass
            if q < _SMALLEST or q > 1 - _SMALLEST:
                z = bounds[0] if q < _SMALLEST else bounds[1]
            else:
                reach = reach_of(family, q) * widest
                low, high = max(first - reach, bounds[0]), min(last + reach, bounds[1])
                z = centre + deviation * math.log(q / (1 - q)) / _LOGISTIC_DEVIATION
                if count >= 2 * _BLOCKS:
                    z = solve(
                        family, few_locs, few_rates, few_shares, few_offsets, few_mass, q, z, low,
                        high, deviation, _ROUGH,
                    )  # fmt: skip
                z = solve(
                    family, row_locs, all_rates, shares, offsets, mass, q, z, low, high, deviation,
                    _CLOSE,
                )  # fmt: skip
            y = z
            if math.isfinite(z):
                y = z * std + mean
                if kind == LOG:
                    y = exp(min(y, _LARGEST)) + shift
                if ends[2]:
                    y = math.ceil(y - 0.5 - 1e-9) + 0.0
            found[k, r] = min(max(y, ends[0]), ends[1])
