"""Compiled loops. Importing this module imports numba; `compiler` does it in the background.

Loops run over slices from 0: numba checks other sums of numbers for being negative, and then makes
no vectors.

In the passes through a network the *lanes* of the innermost loop are pairs of a row and a sample,
or rows alone, so that layers of any width use whole vectors. Buffers are [units, LANES]. Weights
of a layer are one block: means, variances and squared means, each [outputs, inputs] with outputs
padded to an even number and inputs to a multiple of four by zeros, then the biases' means and
variances.
"""

import math

import numpy as np

from models.prediction.compiled import shaped_kernels
from models.prediction.compiled.elementary import (
    DENSITY,
    error_of_mean,
    exp,
    jit,
    mean_and_variance,
    upper_tail,
)

shaped, quantiles = shaped_kernels.shaped, shaped_kernels.quantiles  # all kernels are found here

LANES = 128  # lanes at once: eight vectors of 16 floats, of whose loop the length is known

FEW_LANES = 4  # below which vectors of lanes are nearly empty

RELU, TANH, SILU, GELU = range(4)

_LEAST_VARIANCE = 1e-20  # as `models.prediction.local`
_MAX_STEPS = 60  # of Newton's method, as many as bisection alone would need
_TOLERANCE = 1e-6  # of quantiles, in predictive standard deviations; the error is far smaller
_LOW, _HIGH = -16.0, 6.0  # bounds of a log-variance: `models.likelihoods.likelihood`
_REACH = 8.0  # standard deviations from a bound at which it has no effect


@jit
def activate(h, lanes, kind):
    """Apply the activation to a unit's lanes, in float64 but for ReLU."""
    if kind == RELU:
        for p in range(lanes):
            h[p] = max(h[p], np.float32(0))
    elif kind == TANH:
        for p in range(lanes):
            a = np.float64(h[p])
            e = exp(-2 * abs(a))
            t = (1 - e) / (1 + e)
            h[p] = t if a > 0 else -t
    elif kind == SILU:
        for p in range(lanes):
            a = np.float64(h[p])
            h[p] = a / (1 + exp(-a))
    else:
        for p in range(lanes):
            a = np.float64(h[p])
            tail = upper_tail(a, exp(-0.5 * a * a))
            h[p] = a * (1 - tail) if a > 0 else a * tail


@jit
def _product(weight, bias, x, y, lanes):
    """y = W x + b, for an even number of outputs and a multiple of four inputs."""
    outputs, inputs = weight.shape
    for o in range(0, outputs, 2):
        y0, y1 = y[o], y[o + 1]
        b0, b1 = bias[o], bias[o + 1]
        for p in range(lanes):
            y0[p] = b0
            y1[p] = b1
        for i in range(0, inputs, 4):
            u0, u1, u2, u3 = weight[o, i], weight[o, i + 1], weight[o, i + 2], weight[o, i + 3]
            o1 = o + 1
            v0, v1, v2, v3 = weight[o1, i], weight[o1, i + 1], weight[o1, i + 2], weight[o1, i + 3]
            x0, x1, x2, x3 = x[i], x[i + 1], x[i + 2], x[i + 3]
            for p in range(lanes):
                y0[p] += u0 * x0[p] + u1 * x1[p] + u2 * x2[p] + u3 * x3[p]
                y1[p] += v0 * x0[p] + v1 * x1[p] + v2 * x2[p] + v3 * x3[p]


@jit
def _product_of_few(weight, bias, x, y, lanes):
    """As `_product`, for few lanes: vectors along the inputs."""
    outputs, inputs = weight.shape
    own = np.empty(inputs, np.float32)
    for p in range(lanes):
        for i in range(inputs):
            own[i] = x[i, p]
        for o in range(outputs):
            row, total = weight[o], np.float32(0)
            for i in range(inputs):
                total += row[i] * own[i]
            y[o, p] = bias[o] + total


@jit
def product(weight, bias, x, y, lanes):
    """As `_product`, with a loop of known length where all lanes are used: half as fast again."""
    if lanes == LANES:
        _product(weight, bias, x, y, LANES)
    elif lanes <= FEW_LANES:
        _product_of_few(weight, bias, x, y, lanes)
    else:
        _product(weight, bias, x, y, lanes)


@jit
def padded(inputs, outputs):
    return (inputs + 3) // 4 * 4, (outputs + 1) // 2 * 2


@jit
def matrix(block, number, inputs, outputs):
    """The matrix of this number in a layer's block."""
    n, m = padded(inputs, outputs)
    return block[number * n * m : (number + 1) * n * m].reshape((m, n))


@jit
def biases(block, number, inputs, outputs):
    n, m = padded(inputs, outputs)
    start = 3 * n * m + number * m
    return block[start : start + m]


@jit
def layer(block, inputs, outputs, x, squares, mean, variance, lanes):
    """Moments of the outputs of known inputs: W x + b and V x² + c.

    Fills `squares`, and the inputs' padding with zeros.
    """
    for i in range(inputs):
        for p in range(lanes):
            squares[i, p] = x[i, p] * x[i, p]
    for i in range(inputs, padded(inputs, outputs)[0]):
        x[i, :lanes] = 0
        squares[i, :lanes] = 0
    weight, bias = matrix(block, 0, inputs, outputs), biases(block, 0, inputs, outputs)
    product(weight, bias, x, mean, lanes)
    weight, bias = matrix(block, 1, inputs, outputs), biases(block, 1, inputs, outputs)
    product(weight, bias, squares, variance, lanes)


@jit
def layer_of_gaussian(block, inputs, outputs, m, v, squares, mean, variance, lanes):
    """Moments of the outputs of independent inputs: W m + b and V (v + m²) + W² v + c."""
    for i in range(inputs):
        for p in range(lanes):
            squares[i, p] = v[i, p] + m[i, p] * m[i, p]
    for i in range(inputs, padded(inputs, outputs)[0]):
        m[i, :lanes] = 0
        v[i, :lanes] = 0
        squares[i, :lanes] = 0
    weight, bias = matrix(block, 2, inputs, outputs), biases(block, 1, inputs, outputs)
    product(weight, bias, v, mean, lanes)
    weight = matrix(block, 1, inputs, outputs)
    product(weight, np.zeros_like(bias), squares, variance, lanes)
    for o in range(outputs):
        for p in range(lanes):
            variance[o, p] += mean[o, p]
    weight, bias = matrix(block, 0, inputs, outputs), biases(block, 0, inputs, outputs)
    product(weight, bias, m, mean, lanes)


@jit
def activation_moments(mean, variance, lanes, kind, nodes, node_weights, work):
    """Replace a unit's mean and variance by those of its activation (`models.prediction.local`).

    Args:
        nodes, node_weights: of the quadrature.
        work: a buffer of three units or more.
    """
    if kind == RELU:
        for p in range(lanes):
            m, v = np.float64(mean[p]), np.float64(variance[p])
            scale = math.sqrt(max(v, _LEAST_VARIANCE))
            t = m / scale
            e = exp(-0.5 * t * t)
            below = upper_tail(t, e)
            rest = max(scale * DENSITY * e - abs(m) * below, 0.0)
            positive, negative = max(m, 0.0) + rest, max(-m, 0.0) + rest
            above = 1 - below if t > 0 else below
            mean[p] = positive
            variance[p] = max(v * above - positive * negative, 0.0)
        return
    value, centre, spread = work[0], work[1], work[2]
    for p in range(lanes):
        variance[p] = math.sqrt(variance[p])
        centre[p] = 0
        spread[p] = 0
    for k in range(len(nodes)):
        for p in range(lanes):
            value[p] = mean[p] + variance[p] * nodes[k]
        activate(value, lanes, kind)
        for p in range(lanes):
            centre[p] += node_weights[k] * value[p]
    for k in range(len(nodes)):
        for p in range(lanes):
            value[p] = mean[p] + variance[p] * nodes[k]
        activate(value, lanes, kind)
        for p in range(lanes):
            spread[p] += node_weights[k] * (value[p] - centre[p]) ** 2
    for p in range(lanes):
        mean[p] = centre[p]
        variance[p] = spread[p]


@jit
def _buffers(number, shapes):
    """Buffers as wide as the widest layer."""
    return np.empty((number, shapes[:, :, :2].max() + 4, LANES), np.float32)


@jit
def _first(x, row, lanes, columns, shapes, depth, weights, buffers):
    """Moments of the first layer's units and of the linear path, with a lane for each row.

    `buffers` are means and variances of the units, then of the path, and two to work in.
    """
    first, spread, path, path_spread, inputs, squares = buffers
    read, units, place = shapes[0]
    for i in range(read):
        column = columns[i]
        for p in range(lanes):
            inputs[i, p] = x[row + p, column]
    layer(weights[place:], read, units, inputs, squares, first, spread, lanes)
    outputs = shapes[depth - 1, 1]
    _, reached, place = shapes[depth]
    path[:outputs, :lanes] = 0
    path_spread[:outputs, :lanes] = 0
    if reached:
        means, variances = path[outputs - reached :], path_spread[outputs - reached :]
        layer(weights[place:], read, reached, inputs, squares, means, variances, lanes)


@jit
def _of_gaussian(lanes, shape, weights, kind, quadrature, units, spread, buffers):
    """Replace moments of pre-activations by those of the next layer's.

    `buffers` are its means and variances, and one to work in.
    """
    mean, variance, work = buffers
    width, wide, place = shape
    for u in range(width):
        activation_moments(units[u], spread[u], lanes, kind, quadrature[0], quadrature[1], work)
    layer_of_gaussian(weights[place:], width, wide, units, spread, work, mean, variance, lanes)
    units[:wide, :lanes] = mean[:wide, :lanes]
    spread[:wide, :lanes] = variance[:wide, :lanes]


@jit
def _draw(mean, variance, noise, pair, lanes, into):
    """Draw units of so many lanes, of which the first is this pair of a row and a sample.

    Args:
        mean, variance: a lane for each pair.
        noise: [units, samples].
    """
    units, count = noise.shape
    for u in range(units):
        s, p = pair % count, 0
        while p < lanes:
            length = min(lanes - p, count - s)
            z, centre = noise[u, s : s + length], mean[u, p : p + length]
            spread, drawn = variance[u, p : p + length], into[u, p : p + length]
            for j in range(length):
                drawn[j] = centre[j] + math.sqrt(spread[j]) * z[j]
            p, s = p + length, 0


@jit
def _draw_first(mean, scale, noise, pair, lanes, into):
    """As `_draw`, of means and standard deviations with a lane for each row."""
    units, count = noise.shape
    for u in range(units):
        r, s, p = pair // count, pair % count, 0
        while p < lanes:
            length = min(lanes - p, count - s)
            z, drawn = noise[u, s : s + length], into[u, p : p + length]
            centre, factor = mean[u, r], scale[u, r]
            for j in range(length):
                drawn[j] = centre + factor * z[j]
            p, s, r = p + length, 0, r + 1


@jit
def _write(values, path, row, pair, lanes, start, count, out):
    """Write the outputs of pairs, with what the linear path of their rows adds."""
    for o in range(len(out)):
        r, s, p = pair // count, pair % count, 0
        while p < lanes:
            length = min(lanes - p, count - s)
            target, source = out[o, row + r, start + s :], values[o, p : p + length]
            added = path[o, r]
            for j in range(length):
                target[j] = source[j] + added
            p, s, r = p + length, 0, r + 1


@jit
def _hidden(noise, place, units, count):
    """The noise of a hidden layer."""
    return noise[place : place + units * count].reshape((units, count))


@jit
def _samples(
    row, lanes, shapes, depth, weights, kind, noise, places, start, count, rows, work, out
):
    """Write the moments of the outputs for all samples of a member and some rows.

    Args:
        rows: as `_first` leaves them.
        work: four buffers.
    """
    first, scale, path, path_spread = rows
    h, squares, mean, variance = work
    for u in range(shapes[0, 1]):
        for p in range(lanes):
            scale[u, p] = math.sqrt(scale[u, p])
    for pair in range(0, lanes * count, LANES):
        pairs = min(LANES, lanes * count - pair)
        for i in range(1, depth):
            width, wide, place = shapes[i]
            block = _hidden(noise, places[i - 1], width, count)
            if i == 1:
                _draw_first(first, scale, block, pair, pairs, h)
            else:
                _draw(mean, variance, block, pair, pairs, h)
            for u in range(width):
                activate(h[u], pairs, kind)
            layer(weights[place:], width, wide, h, squares, mean, variance, pairs)
        _write(mean, path, row, pair, pairs, start, count, out[0])
        _write(variance, path_spread, row, pair, pairs, start, count, out[1])


@jit
def sample(
    x, columns, shapes, depths, weights, kind, quadrature, noise, places, starts, out, exact
):
    """Moments of the outputs given a draw of each hidden layer.

    Args:
        x: [rows, inputs].
        columns: of each member: the inputs that it reads.
        shapes, depths, weights: the networks (`models.prediction.compiled.packed`).
        kind: the activation's number.
        quadrature: nodes and weights [2, nodes].
        noise, places: of each hidden layer of each member [units, samples], and where it starts.
        starts: the first sample of each member, and the number of all samples.
        out: means and variances [2, outputs, rows, samples].
        exact: moments of the first output with nothing drawn [2, members, rows], of networks with
            at most one hidden layer; without members where they are not wanted.
    """
    outputs, rows = out.shape[1], len(x)
    buffers = _buffers(8, shapes)
    first, spread, path, path_spread = buffers[0], buffers[1], buffers[2], buffers[3]
    h, squares, mean, variance = buffers[4], buffers[5], buffers[6], buffers[7]
    for m in range(len(depths)):
        start, stop, depth = starts[m], starts[m + 1], depths[m]
        for row in range(0, rows, LANES):
            lanes = min(LANES, rows - row)
            free = (first, spread, path, path_spread, h, squares)
            _first(x, row, lanes, columns[m], shapes[m], depth, weights, free)
            if exact.shape[1]:
                h[:, :lanes] = first[:, :lanes]
                variance[:, :lanes] = spread[:, :lanes]
                if depth == 2:
                    work = (mean, np.empty_like(mean), squares)
                    _of_gaussian(lanes, shapes[m, 1], weights, kind, quadrature, h, variance, work)
                for p in range(lanes):
                    exact[0, m, row + p] = h[0, p] + path[0, p]
                    exact[1, m, row + p] = variance[0, p] + path_spread[0, p]
            if depth > 1:
                _samples(
                    row, lanes, shapes[m], depth, weights, kind, noise, places[m], start,
                    stop - start, (first, spread, path, path_spread),
                    (h, squares, mean, variance), out,
                )  # fmt: skip
                continue
            for o in range(outputs):
                for p in range(lanes):
                    out[0, o, row + p, start:stop] = first[o, p]
                    out[1, o, row + p, start:stop] = spread[o, p]


@jit
def propagate(x, columns, shapes, depths, weights, kind, quadrature, out):
    """Moments of the outputs without draws, [2, outputs, rows, members]; arguments as `sample`."""
    outputs, rows = out.shape[1], len(x)
    buffers = _buffers(7, shapes)
    units, spread, path, path_spread = buffers[0], buffers[1], buffers[2], buffers[3]
    work = (buffers[4], buffers[5], buffers[6])
    for m in range(len(depths)):
        for row in range(0, rows, LANES):
            lanes = min(LANES, rows - row)
            free = (units, spread, path, path_spread, buffers[4], buffers[5])
            _first(x, row, lanes, columns[m], shapes[m], depths[m], weights, free)
            for i in range(1, depths[m]):
                _of_gaussian(lanes, shapes[m, i], weights, kind, quadrature, units, spread, work)
            for o in range(outputs):
                for p in range(lanes):
                    out[0, o, row + p, m] = units[o, p] + path[o, p]
                    out[1, o, row + p, m] = spread[o, p] + path_spread[o, p]


@jit
def quantile(means, scales, inverses, centre, deviation, level, z):
    """A mixture's quantile, as `NumberMixture.quantiles`.

    Args:
        inverses: 1 ÷ scales.
        centre, deviation: of the mixture.
        z: the standard normal's quantile.
    """
    count = len(means)
    low, high = means[0] + z * scales[0], means[0] + z * scales[0]
    for s in range(count):
        bound = means[s] + z * scales[s]
        low, high = min(low, bound), max(high, bound)
    value = min(max(centre + z * deviation, low), high)
    for _ in range(_MAX_STEPS):
        below, density = 0.0, 0.0
        for s in range(count):
            d = (value - means[s]) * inverses[s]
            e = exp(-0.5 * d * d)
            tail = upper_tail(d, e)
            below += 1 - tail if d > 0 else tail
            density += e * inverses[s]
        excess = below / count - level
        if excess < 0:
            low = value
        elif excess > 0:
            high = value
        step = value - excess / max(density * DENSITY / count, 1e-300)
        previous = value
        value = step if low <= step <= high else 0.5 * (low + high)
        if abs(value - previous) <= _TOLERANCE * deviation:
            break
    return value


@jit
def numbers(out, noise, owner, log_noise, exact, units, whole, factor, levels, z, errors, found):
    """Mean, variances, error and quantiles of Gaussian mixtures, as `summarise` has them.

    Args:
        out: means and variances of the outputs [2, outputs, rows, columns].
        noise: normals to draw the outputs with [outputs, samples].
        owner: the column of `out` that each sample is.
        log_noise: of each sample, if there is one output.
        exact: [2, members, rows] as of `sample`.
        units: the target's mean and standard deviation.
        whole: whether all weights are drawn, none integrated.
        factor: on all variances.
        levels, z: of the quantiles, and the standard normal's.
        errors: the arguments of `error_of_mean` after its first, with more than one sample.
        found: mean, aleatoric and epistemic variance, error, quantiles [4 + levels, rows].

    Returns:
        Whether all is finite, and the noise within its bounds: its expectation is exp(μ + v/2).
    """
    outputs, rows, count = out.shape[1], out.shape[2], len(owner)
    starts, firsts, owners, size, shares = errors
    centre, std = units
    square, root = std * std, math.sqrt(factor)
    buffers = np.empty((4, count))
    means, variances, scales, inverses = buffers[0], buffers[1], buffers[2], buffers[3]
    blocks = np.empty(len(firsts))
    for r in range(rows):
        aleatoric, spread = 0.0, 0.0
        within = True
        for s in range(count):
            c = owner[s]
            m, v = np.float64(out[0, 0, r, c]), np.float64(out[1, 0, r, c])
            if whole:
                m, v = m + math.sqrt(v) * noise[0, s], 0.0
            means[s] = m * std + centre
            spread += v
            variances[s] = v
        if outputs == 1:
            for s in range(count):
                e = exp(min(max(np.float64(log_noise[s]), _LOW), _HIGH))
                aleatoric += e
                variances[s] += e
        else:
            for s in range(count):
                c = owner[s]
                m, v = np.float64(out[0, 1, r, c]), np.float64(out[1, 1, r, c])
                scale = math.sqrt(v)
                reach = _REACH * scale
                within &= (m - reach > _LOW) & (m + v + reach < _HIGH)
                drawn = exp(min(max(m + scale * noise[1, s], _LOW), _HIGH))
                aleatoric += drawn if whole else exp(m + 0.5 * v)
                variances[s] += drawn
            if not (within or whole):
                return False
        mean, between = mean_and_variance(means)
        error = 0.0
        if count > 1 and not exact.shape[1]:
            error = error_of_mean(means, starts, firsts, owners, size, shares, blocks)
        for s in range(count):
            means[s] = mean + root * (means[s] - mean)
        total = 0.0
        for s in range(count):
            variances[s] *= factor * square
            total += variances[s]
            scales[s] = math.sqrt(variances[s])
            inverses[s] = 1 / scales[s]
        deviation = math.sqrt(factor * between + total / count)
        if not math.isfinite(mean + deviation):
            return False
        for k in range(len(levels)):
            found[4 + k, r] = quantile(means, scales, inverses, mean, deviation, levels[k], z[k])
        epistemic = between + square * spread / count
        if exact.shape[1]:
            members = exact.shape[1]
            known, spread = np.empty(members), 0.0
            for m in range(members):
                known[m] = exact[0, m, r] * std + centre
                spread += exact[1, m, r]
            mean, between = mean_and_variance(known)
            epistemic = between + square * spread / members
        found[0, r] = mean
        found[1, r] = factor * square * aleatoric / count
        found[2, r] = factor * epistemic
        found[3, r] = error
    return True


@jit
def classes(out, noise, owner, binary, temperature, errors, found, entropies):
    """Means, variances and errors of class probabilities, and the entropies.

    Args:
        binary: whether the one output o is of two classes with the logits (−o/2, o/2).
        temperature: which logits are divided by.
        found: mean, aleatoric and epistemic variance, error [4, rows, classes].
        entropies: expected entropy and mutual information [2, rows].
        others: as of `numbers`.

    Returns:
        Whether all logits are finite.
    """
    outputs, rows, count = out.shape[1], out.shape[2], len(owner)
    starts, firsts, owners, size, shares = errors
    number = 2 if binary else outputs
    probs, logit = np.empty((number, count)), np.empty((number, count))
    highest, sums, blocks = np.empty(count), np.empty(count), np.empty(len(firsts))
    for r in range(rows):
        check = 0.0
        for k in range(outputs):
            for s in range(count):
                c = owner[s]
                m, v = np.float64(out[0, k, r, c]), np.float64(out[1, k, r, c])
                logit[k, s] = (m + math.sqrt(v) * noise[k, s]) / temperature
                check += abs(logit[k, s])
        if not math.isfinite(check):
            return False
        if binary:
            for s in range(count):
                half = 0.5 * logit[0, s]
                logit[0, s] = -half
                logit[1, s] = half
        highest[:] = logit[0]
        sums[:] = 0
        for k in range(1, number):
            for s in range(count):
                highest[s] = max(highest[s], logit[k, s])
        for k in range(number):
            for s in range(count):
                e = exp(logit[k, s] - highest[s])
                probs[k, s] = e
                sums[s] += e
        expected = 0.0
        for s in range(count):
            expected += math.log(sums[s])
            sums[s] = 1 / sums[s]
        total = 0.0
        for k in range(number):
            entropy, noisy = 0.0, 0.0
            for s in range(count):
                p = probs[k, s] * sums[s]
                probs[k, s] = p
                entropy += p * (logit[k, s] - highest[s])
                noisy += p * (1 - p)
            expected -= entropy
            mean, between = mean_and_variance(probs[k])
            total -= mean * math.log(mean) if mean > 0 else 0.0
            found[0, r, k] = mean
            found[1, r, k] = noisy / count
            found[2, r, k] = between
            if count > 1:
                found[3, r, k] = error_of_mean(
                    probs[k], starts, firsts, owners, size, shares, blocks
                )
        entropies[0, r] = expected / count
        entropies[1, r] = max(total - expected / count, 0.0)
    return True
