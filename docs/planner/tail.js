// The binomial tail, exact: whether so many errors are within budget is decided with whole numbers of 256 bits, as the
// library decides it with 60 decimal digits. Doubles only say where to look first. Equations (2) to (5) of the theory.
Object.assign(PacWrap, (() => {
  const [ONE, WIDE, EQUAL] = [1n << 256n, 1n << 320n, 10n ** 40n];
  const NO_TOLERANCE = { before: (rate) => rate, after: (rate) => rate };

  // a double of 0 or more as a whole number and how often it was halved
  const halved = (x) => {
    let times = 0;
    for (; !Number.isInteger(x); times++) x *= 2;
    return [BigInt(x), times];
  };
  // a number m 2^e with 256 to 320 bits of m
  const normal = (m, e) => {
    for (; m >= WIDE; e += 64) m >>= 64n;
    for (; m < ONE; e -= 64) m <<= 64n;
    return [m, e];
  };
  const times = ([m, e], [n, f]) => normal(m * n, e + f);
  const power = (base, n) => {
    let found = normal(1n, 0);
    for (let square = normal(...base); n; n = Math.floor(n / 2), square = times(square, square)) {
      if (n % 2) found = times(found, square);
    }
    return found;
  };
  const ways = (n, k) => {
    let found = normal(1n, 0);
    for (let i = 0; i < Math.min(k, n - k); i++) found = normal((found[0] * BigInt(n - i)) / BigInt(i + 1), found[1]);
    return found;
  };

  // F(k; n, p) as m 2^e, for k < n
  const cdf = (k, n, p) => {
    const [hit, s] = halved(p);
    const miss = (1n << BigInt(s)) - hit;
    let [term, total] = [ONE, ONE];
    for (let i = k; i > 0 && term; i--) {
      term = (term * BigInt(i) * miss) / (BigInt(n - i + 1) * hit);
      total += term;
    }
    const last = times(times(ways(n, k), power([hit, -s], k)), power([miss, -s], n - k));
    return times(last, [total, -256]);
  };

  // whether F(k; n, p) <= delta; what agrees to 40 digits is equal
  const atMost = (k, n, p, delta) => {
    if (k >= n) return false;
    const [[m, e], [d, s]] = [cdf(k, n, p), halved(delta)];
    if (e < -4000) return true;
    const shift = BigInt(e + s);
    const [left, right] = [m * EQUAL, d * (EQUAL + 1n)];
    return shift >= 0n ? left << shift <= right : left <= right << -shift;
  };

  // the same in doubles, good to ten digits or so below the mean; above it no delta of up to a half is met
  const series = (x) => (1 / 12 - (1 / 360 - 1 / (1260 * x * x)) / (x * x)) / x;
  const logFactorial = (x) => {
    if (x < 20) {
      let product = 1;
      for (let i = 2; i <= x; i++) product *= i;
      return Math.log(product);
    }
    return (x + 0.5) * Math.log(x) - x + 0.5 * Math.log(2 * Math.PI) + series(x);
  };
  const about = (k, n, p) => {
    if (k > n * p + 1) return 1;
    let [term, total] = [1, 1];
    for (let i = k; i > 0 && term > 1e-17 * total; i--) {
      term *= (i * (1 - p)) / ((n - i + 1) * p);
      total += term;
    }
    const choices = logFactorial(n) - logFactorial(k) - logFactorial(n - k);
    return total * Math.exp(choices + k * Math.log(p) + (n - k) * Math.log1p(-p));
  };
  // the first whole number from `low` on at which something holds, where it holds for all larger ones
  const from = (low, holds) => {
    let step = 1;
    while (!holds(low + step)) step *= 2;
    let high = low + step;
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (holds(middle)) high = middle; else low = middle;
    }
    return high;
  };
  const exactly = (guess, least, holds) => {
    while (!holds(guess)) guess++;
    while (guess > least && holds(guess - 1)) guess--;
    return guess;
  };

  // the least number of labels whose budget is at least so many errors: (4)
  const needed = (rate, delta, errors) => {
    const guess = from(errors, (n) => about(errors, n, rate) <= delta);
    return exactly(guess, errors + 1, (n) => atMost(errors, n, rate, delta));
  };

  // the most errors that n labels may show, null if they are too few: (2)
  const budget = (n, rate, delta) => {
    const guess = from(-1, (k) => k >= n || about(k, n, rate) > delta);
    const first = exactly(guess, 0, (k) => !atMost(k, n, rate, delta));
    return first ? first - 1 : null;
  };

  // the least ceiling that n labels keep with a number of errors, as `ceiling` writes it: (5) rounded up; with a tolerated
  // shift, the least ceiling whose ceiling at calibration is kept
  const kept = (n, delta, errors, tolerance = NO_TOLERANCE) => {
    if (errors >= n) return null;
    let [low, high] = [0, 1];
    for (let i = 0; i < 60; i++) {
      const middle = (low + high) / 2;
      if (about(errors, n, middle) <= delta) high = middle; else low = middle;
    }
    high = tolerance.after(high);
    if (high >= 1) return null;
    const unit = Math.floor(Math.log10(high)) - (high >= 0.01 ? 2 : 1);
    const rate = (whole) => Number(`${whole}e${unit}`);
    const keeps = (one) => one > 0 && atMost(errors, n, one, delta);
    const whole = exactly(Math.ceil(high / 10 ** unit), 1, (one) => rate(one) >= 1 || keeps(tolerance.before(rate(one))));
    return rate(whole);
  };

  // the confidence that independent classes keep together, the product of 1 - F(errors; n, rate), in percent and rounded
  // down: (97), and (3) for one of them
  const together = (cases) => {
    let [kept, bits] = [10n ** 20n, 0n];
    for (const [n, rate, errors] of cases) {
      const [m, e] = cdf(errors, n, rate);
      kept *= (1n << BigInt(-e)) - m;
      bits += BigInt(-e);
    }
    const digits = String(kept >> bits).padStart(20, "0");
    return `${PacWrap.rounded(Number(`0.${digits}`), 4, false, 2)} %`;
  };
  const sure = (n, rate, errors) => together([[n, rate, errors]]);

  // the largest double that something exact allows, next to a guess
  const allowed = (guess, holds) => {
    while (!holds(guess)) guess = -PacWrap.nextUp(-guess);
    return guess;
  };
  const product = ([a, s], [b, t]) => [a * b, s + t];
  const sum = ([a, s], [b, t]) => [(a << BigInt(Math.max(s, t) - s)) + (b << BigInt(Math.max(s, t) - t)), Math.max(s, t)];
  const noMore = ([a, s], [b, t]) => a << BigInt(Math.max(s, t) - s) <= b << BigInt(Math.max(s, t) - t);
  // `before`: the ceiling at calibration, given a ceiling after the shift; never too large, 0 if there is none: (71) and (72).
  // `after`: about the rate that a rate may become
  const tolerances = {
    none: () => NO_TOLERANCE,
    tv: (size) => ({
      before: (rate) => (size >= rate ? 0 : allowed(rate - size, (x) => noMore(sum(halved(x), halved(size)), halved(rate)))),
      after: (rate) => rate + size,
    }),
    ratio: (size) => ({
      before: (rate) => allowed(rate / size, (x) => noMore(product(halved(x), halved(size)), halved(rate))),
      after: (rate) => rate * size,
    }),
  };

  return { needed, budget, kept, sure, together, about, tolerances };
})());
