"use strict";

// Functions of numbers, which know no page. Whatever is shown or saved is what the library itself would
// write, digit for digit: ceilings rounded up, confidences and other lower bounds down.
const PacWrap = (() => {
  // the shortest digits that read back as the same double, and the power of ten of the first
  const parts = (x) => {
    const [digits, power] = Math.abs(x).toExponential().split("e");
    return { digits: digits.replace(".", ""), power: Number(power) };
  };

  const plain = (digits, power) => {
    if (power < 0) return "0." + "0".repeat(-power - 1) + digits;
    if (digits.length <= power + 1) return digits + "0".repeat(power + 1 - digits.length);
    return digits.slice(0, power + 1) + "." + digits.slice(power + 1);
  };

  // a double as Python and its JSON write it
  const repr = (x) => {
    if (!Number.isFinite(x)) return x > 0 ? '"inf"' : '"-inf"';
    const sign = x < 0 || Object.is(x, -0) ? "-" : "";
    const { digits, power } = parts(x);
    if (power >= -4 && power < 16) return sign + plain(digits, power) + (digits.length <= power + 1 ? ".0" : "");
    const rest = digits.length > 1 ? "." + digits.slice(1) : "";
    return sign + digits[0] + rest + "e" + (power < 0 ? "-" : "+") + String(Math.abs(power)).padStart(2, "0");
  };

  // a number of 0 or more with so many digits, rounded up or down, times a power of ten
  const rounded = (x, most, up, shift = 0) => {
    let { digits, power } = parts(x);
    power += shift;
    if (digits.length > most) {
      digits = digits.slice(0, most);
      if (up) digits = String(Number(digits) + 1);
      power += digits.length - most;
    }
    return plain(digits.replace(/0+$/, "") || "0", power);
  };

  const ceiling = (rate) => {
    const told = rate >= 0.01 ? 3 : 2;
    return `${rounded(rate, parts(rate).digits.length <= 4 ? 4 : told, true, 2)} %`;
  };
  const least = (share, digits = 3) => `${rounded(share, digits, false, 2)} %`;
  // with three digits, what is 1,000 or more has no decimals
  const grouped = (text) => (text.includes(".") ? text : text.replace(/\B(?=(\d{3})+$)/g, ","));
  const between = (low, high) => {
    const most = grouped(rounded(high, 3, true));
    if (low > 0) return `${grouped(rounded(low, 3, false))} to ${most}`;
    return high > 0 ? `at most ${most}` : "none";
  };

  // exact decimals of 0 or more: digits from the last to the first, and the power of ten of the last
  const decimal = (x) => {
    const { digits, power } = parts(x);
    return [digits.split("").reverse().map(Number), power - digits.length + 1];
  };
  const carried = (cells, power) => {
    for (let i = 0; i < cells.length; i++) {
      const over = Math.floor(cells[i] / 10);
      cells[i] -= 10 * over;
      if (over) cells[i + 1] = (cells[i + 1] || 0) + over;
    }
    return [cells, power];
  };
  const times = ([a, i], [b, j]) => {
    const cells = new Array(a.length + b.length).fill(0);
    a.forEach((x, k) => b.forEach((y, l) => { cells[k + l] += x * y; }));
    return carried(cells, i + j);
  };
  const plus = ([a, i], [b, j], sign = 1) => {
    const power = Math.min(i, j);
    const cells = new Array(Math.max(a.length + i, b.length + j) - power).fill(0);
    a.forEach((x, k) => { cells[k + i - power] += x; });
    b.forEach((x, k) => { cells[k + j - power] += sign * x; });
    return carried(cells, power);
  };
  const double = ([cells, power]) => Number(cells.slice().reverse().join("") + "e" + power);

  const nextUp = (x) => {
    if (x === 0) return 5e-324;
    if (x === Infinity) return x;
    if (x === -Infinity) return -Number.MAX_VALUE;
    const view = new DataView(new ArrayBuffer(8));
    view.setFloat64(0, x);
    let [high, low] = [view.getUint32(0), view.getUint32(4)];
    if (x > 0) {
      low += 1;
      if (low > 0xffffffff) [high, low] = [high + 1, 0];
    } else {
      low -= 1;
      if (low < 0) [high, low] = [high - 1, 0xffffffff];
    }
    view.setUint32(0, high);
    view.setUint32(4, low);
    return view.getFloat64(0) + 0;
  };

  // the checksum of a text of ASCII: pages in files have no crypto.subtle in every browser
  const sha256 = (text) => {
    const root = (x, power) => { const y = x ** power; return ((y - Math.floor(y)) * 2 ** 32) | 0; };
    const primes = [];
    for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n % p)) primes.push(n);
    const keys = primes.map((p) => root(p, 1 / 3));
    let state = primes.slice(0, 8).map((p) => root(p, 1 / 2));
    const blocks = ((text.length + 8) >> 6) + 1;
    const words = new Int32Array(16 * blocks);
    for (let i = 0; i < text.length; i++) words[i >> 2] |= text.charCodeAt(i) << (24 - 8 * (i & 3));
    words[text.length >> 2] |= 0x80 << (24 - 8 * (text.length & 3));
    words[16 * blocks - 1] = 8 * text.length;
    const turn = (x, n) => (x >>> n) | (x << (32 - n));
    for (let start = 0; start < words.length; start += 16) {
      const w = Array.from(words.subarray(start, start + 16));
      let [a, b, c, d, e, f, g, h] = state;
      for (let i = 0; i < 64; i++) {
        if (i > 15) {
          const [x, y] = [w[i - 15], w[i - 2]];
          const before = turn(x, 7) ^ turn(x, 18) ^ (x >>> 3);
          w[i] = (w[i - 16] + before + w[i - 7] + (turn(y, 17) ^ turn(y, 19) ^ (y >>> 10))) | 0;
        }
        const one = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + keys[i] + w[i]) | 0;
        const two = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
        [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
      }
      state = [a, b, c, d, e, f, g, h].map((x, i) => (x + state[i]) | 0);
    }
    return state.map((x) => (x >>> 0).toString(16).padStart(8, "0")).join("");
  };

  // the first place of a sorted list at which something holds, its length if it holds nowhere
  const first = (list, holds) => {
    let [low, high] = [0, list.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (holds(list[middle])) high = middle; else low = middle + 1;
    }
    return low;
  };

  // a curve as it is read from the page; where a class has no bound below 1, the bound is 1
  const read = (text) => {
    const curve = JSON.parse(text);
    const number = (x) => ({ inf: Infinity, "-inf": -Infinity }[x] || x);
    for (const side of [curve.normal, curve.anomalous]) side.scores = side.scores.map(number);
    return curve;
  };
  const alarmStep = (curve, t) => first(curve.normal.scores, (score) => score < t);
  const missStep = (curve, t) => first(curve.anomalous.scores, (score) => score >= t);
  const bound = (side, step) => (step < side.bounds.length ? side.bounds[step] : 1);
  const fpr = (curve, t) => (t === Infinity ? 0 : bound(curve.normal, alarmStep(curve, t)));
  const fnr = (curve, t) => {
    if (t === -Infinity) return 0;
    return t === Infinity ? 1 : bound(curve.anomalous, missStep(curve, t));
  };

  // the certificate of the rule "anomaly from t on", as `Curve.at(t).to_json()`; null where nothing is certified
  const certificate = (curve, t, place) => {
    const [i, j] = [alarmStep(curve, t), missStep(curve, t)];
    const { normal, anomalous, texts, mark, rules } = curve;
    const both = [i < normal.bounds.length && "fpr", j < anomalous.bounds.length && "fnr"].filter(Boolean);
    if (!both.length) return null;
    const values = { threshold: repr(t), rule: repr(rules ? rules[place] : t) };
    const [pattern, filled] = [new RegExp(`"${mark}(\\w+)"`, "g"), (_, name) => values[name]];
    for (const [name, side, step] of [["fpr", normal, i], ["fnr", anomalous, j]]) {
      if (!both.includes(name)) continue;
      values[name] = repr(side.bounds[step]);
      values[`${name}_errors`] = String(side.errors[step]);
      values[`${name}_confidence`] = repr(side.confidences[step]);
      values[`${name}_score`] = repr(name === "fpr" ? nextUp(side.scores[step]) : side.scores[step]);
    }
    const [canonical, readable] = texts[both.join()];
    values.checksum = `"${sha256(canonical.replace(pattern, filled))}"`;
    return readable.replace(pattern, filled);
  };

  // what the rule "normal below `below`, anomaly from `from` on" brings to so many points, in words: eqs. (48)
  // and (49)
  const readout = (curve, below, from, low, high, points) => {
    const [alarms, lost, missed] = [fpr(curve, from), fnr(curve, from), fnr(curve, below)];
    const undecided = below === from ? [0, 0] : [fpr(curve, below), lost];
    const words = (rate) => (rate < 1 ? `at most ${ceiling(rate)}` : "not bounded");
    const found = { fpr: words(alarms), fnr: words(missed) };
    const [one, all] = [decimal(1), decimal(points)];
    const mixed = (p, a, b) => plus(times(plus(one, p, -1), decimal(a)), times(p, decimal(b)));
    const count = (share) => Math.min(points, double(times(all, share)));
    const [p, q] = [decimal(low), decimal(high)];
    found.undecided = between(0, Math.max(...[p, q].map((share) => count(mixed(share, ...undecided)))));
    const none = "not bounded";
    if (from === Infinity || alarms === 1 || lost === 1 || missed === 1) {
      return Object.assign(found, { alarms: none, right: none, missed: none, precision: none });
    }
    const caught = 1 - lost;
    const [right, wrong] = [low * caught, (1 - low) * alarms];
    const sure = count(times(p, decimal(caught)));
    return Object.assign(found, {
      alarms: between(sure, count(mixed(q, alarms, 1))),
      right: between(sure, count(q)),
      missed: between(0, count(times(q, decimal(missed)))),
      precision: `at least ${least(right / (right + wrong))}`,
    });
  };

  // "0.02", or a range such as "0.01-0.03"; null if it is neither
  const prevalence = (text) => {
    // a hyphen after a digit divides; that of 1e-3 does not
    const ends = text.replace(/([\d.])\s*-/, "$1:").split(":").map((end) => end.trim());
    const [low, high] = [Number(ends[0]), Number(ends[ends.length - 1])];
    return ends.length < 3 && ends.every(Boolean) && low > 0 && low <= high && high < 1 ? [low, high] : null;
  };

  // "50000" or "50,000"; null if it is no number of points
  const points = (text) => {
    const plainly = text.trim().replace(/(\d)[, ](?=\d{3}(\D|$))/g, "$1");
    return /^\d{1,12}$/.test(plainly) && Number(plainly) > 0 ? Number(plainly) : null;
  };

  return { repr, rounded, ceiling, least, grouped, between, nextUp, sha256, first, read, alarmStep, missStep, certificate, readout,
    prevalence, points };
})();
// How a page is worked by mouse, touch and keyboard; this knows no numbers.
Object.assign(PacWrap, {
  // what a slider stands for, in words, beside it and for a screen reader
  say(input, words) {
    input.setAttribute("aria-valuetext", words);
    const output = input.form.querySelector(`output[for="${input.id}"]`);
    if (output) output.textContent = words;
  },
  // the value of a text field, marked if it is none
  value(input, read) {
    const value = read(input.value);
    input.setAttribute("aria-invalid", String(value === null));
    return value;
  },
  // a part of a drawing
  drawn(parent, kind, shape) {
    const part = document.createElementNS("http://www.w3.org/2000/svg", kind);
    for (const [name, value] of Object.entries(shape)) part.setAttribute(name, value);
    parent.append(part);
    return part;
  },
  // a picture that is dragged in, by mouse, pen or finger: where, as shares of its width and height
  dragged(plot, begin, move) {
    const moved = (event) => {
      const box = plot.getBoundingClientRect();
      move((event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
    };
    plot.addEventListener("pointerdown", (event) => {
      begin();
      plot.setPointerCapture(event.pointerId);
      moved(event);
    });
    plot.addEventListener("pointermove", (event) => { if (plot.hasPointerCapture(event.pointerId)) moved(event); });
  },
});
// The binomial tail, exact: whether so many errors are within budget is decided with whole numbers of 256 bits, as the
// library decides it with 60 decimal digits. Doubles only say where to look first. Equations (2) to (5) of the theory.
Object.assign(PacWrap, (() => {
  const [ONE, WIDE, EQUAL] = [1n << 256n, 1n << 320n, 10n ** 40n];
  const NO_ROOM = { before: (rate) => rate, after: (rate) => rate };

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

  // the least ceiling that n labels keep while so many are errors, as `ceiling` writes it: (5) rounded up; with room for a
  // shift, the least one that leaves as much at calibration
  const kept = (n, delta, errors, room = NO_ROOM) => {
    if (errors >= n) return null;
    let [low, high] = [0, 1];
    for (let i = 0; i < 60; i++) {
      const middle = (low + high) / 2;
      if (about(errors, n, middle) <= delta) high = middle; else low = middle;
    }
    high = room.after(high);
    if (high >= 1) return null;
    const unit = Math.floor(Math.log10(high)) - (high >= 0.01 ? 2 : 1);
    const rate = (whole) => Number(`${whole}e${unit}`);
    const keeps = (one) => one > 0 && atMost(errors, n, one, delta);
    const whole = exactly(Math.ceil(high / 10 ** unit), 1, (one) => rate(one) >= 1 || keeps(room.before(rate(one))));
    return rate(whole);
  };

  // the confidence 1 - F(errors; n, rate), in percent and rounded down: (3)
  const sure = (n, rate, errors) => {
    const [m, e] = cdf(errors, n, rate);
    const scale = 10n ** 20n;
    const digits = String(((scale << BigInt(-e)) - m * scale) >> BigInt(-e)).padStart(20, "0");
    return PacWrap.least(Number(`0.${digits}`), 4);
  };

  // the largest double that something exact allows, next to a guess
  const allowed = (guess, holds) => {
    while (!holds(guess)) guess = -PacWrap.nextUp(-guess);
    return guess;
  };
  const product = ([a, s], [b, t]) => [a * b, s + t];
  const sum = ([a, s], [b, t]) => [(a << BigInt(Math.max(s, t) - s)) + (b << BigInt(Math.max(s, t) - t)), Math.max(s, t)];
  const noMore = ([a, s], [b, t]) => a << BigInt(Math.max(s, t) - s) <= b << BigInt(Math.max(s, t) - t);
  // what a ceiling leaves for calibration after room for a shift, never more, 0 if nothing: (71) and (72); and, about, what a
  // rate may become
  const rooms = {
    none: () => NO_ROOM,
    tv: (size) => ({
      before: (rate) => (size >= rate ? 0 : allowed(rate - size, (x) => noMore(sum(halved(x), halved(size)), halved(rate)))),
      after: (rate) => rate + size,
    }),
    ratio: (size) => ({
      before: (rate) => allowed(rate / size, (x) => noMore(product(halved(x), halved(size)), halved(rate))),
      after: (rate) => rate * size,
    }),
  };

  return { needed, budget, kept, sure, about, rooms };
})());
PacWrap.plans = {"ceilings":[0.001,0.002,0.005,0.01,0.02,0.03,0.05,0.1,0.15,0.2,0.3],"deltas":[0.2,0.1,0.05,0.025,0.02,0.01,0.005,0.001],"errors":[0,1,2,5,10],"costs":{"curve":{"0.2":{"0.001":4995,"0.002":2464,"0.005":983,"0.01":472,"0.02":225,"0.03":144,"0.05":82,"0.1":37,"0.15":23,"0.2":16,"0.3":9},"0.1":{"0.001":5913,"0.002":2923,"0.005":1154,"0.01":568,"0.02":273,"0.03":177,"0.05":101,"0.1":46,"0.15":29,"0.2":20,"0.3":12},"0.05":{"0.001":6763,"0.002":3361,"0.005":1332,"0.01":658,"0.02":317,"0.03":206,"0.05":119,"0.1":55,"0.15":35,"0.2":25,"0.3":15},"0.025":{"0.001":7607,"0.002":3772,"0.005":1500,"0.01":743,"0.02":360,"0.03":234,"0.05":136,"0.1":63,"0.15":40,"0.2":28,"0.3":17},"0.02":{"0.001":7866,"0.002":3910,"0.005":1542,"0.01":770,"0.02":373,"0.03":243,"0.05":141,"0.1":66,"0.15":42,"0.2":30,"0.3":18},"0.01":{"0.001":8666,"0.002":4307,"0.005":1704,"0.01":852,"0.02":414,"0.03":270,"0.05":157,"0.1":74,"0.15":47,"0.2":33,"0.3":20},"0.005":{"0.001":9461,"0.002":4698,"0.005":1866,"0.01":932,"0.02":454,"0.03":297,"0.05":173,"0.1":82,"0.15":52,"0.2":37,"0.3":23},"0.001":{"0.001":11243,"0.002":5586,"0.005":2219,"0.01":1100,"0.02":544,"0.03":357,"0.05":209,"0.1":99,"0.15":63,"0.2":45,"0.3":28}},"raise":{"0.2":{"0.001":2075,"0.002":1037,"0.005":415,"0.01":207,"0.02":103,"0.03":69,"0.05":41,"0.1":20,"0.15":13,"0.2":10,"0.3":5},"0.1":{"0.001":2839,"0.002":1419,"0.005":567,"0.01":283,"0.02":141,"0.03":94,"0.05":56,"0.1":28,"0.15":18,"0.2":13,"0.3":8},"0.05":{"0.001":3589,"0.002":1794,"0.005":717,"0.01":358,"0.02":178,"0.03":119,"0.05":71,"0.1":35,"0.15":23,"0.2":17,"0.3":10},"0.025":{"0.001":4330,"0.002":2164,"0.005":865,"0.01":432,"0.02":215,"0.03":143,"0.05":85,"0.1":42,"0.15":27,"0.2":20,"0.3":12},"0.02":{"0.001":4567,"0.002":2283,"0.005":912,"0.01":455,"0.02":227,"0.03":151,"0.05":90,"0.1":44,"0.15":29,"0.2":21,"0.3":13},"0.01":{"0.001":5299,"0.002":2649,"0.005":1058,"0.01":528,"0.02":263,"0.03":175,"0.05":104,"0.1":51,"0.15":33,"0.2":24,"0.3":15},"0.005":{"0.001":6027,"0.002":3012,"0.005":1204,"0.01":601,"0.02":299,"0.03":199,"0.05":118,"0.1":58,"0.15":38,"0.2":28,"0.3":17},"0.001":{"0.001":7704,"0.002":3850,"0.005":1538,"0.01":768,"0.02":382,"0.03":254,"0.05":151,"0.1":74,"0.15":48,"0.2":35,"0.3":22}}}};
// The planner: ceilings, a confidence and labels at hand choose, and the answers follow.
(() => {
  const place = document.getElementById("planner");
  if (!place) return;
  const { ceilings, deltas, errors, costs } = PacWrap.plans;
  const MOST = 1000000;
  // the labels that a slider stops at: 1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8 times a power of ten
  const stops = [10, 100, 1000, 10000, 100000].flatMap((ten) => [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8].map((x) => x * ten));
  stops.push(MOST);
  const sides = [
    { id: "fpr", rate: "FPR", of: "normal", name: "False alarms", points: "normal points that are called anomalies" },
    { id: "fnr", rate: "FNR", of: "anomalous", name: "Missed anomalies", points: "anomalies that are called normal" },
  ];
  const text = (id, label, size, help = "") => `<p class="field"><label for="${id}">${label}</label> `
    + `<input type="text" id="${id}" size="${size}" autocomplete="off" spellcheck="false">${help}</p>`;
  const slider = (id, label, size) => `<p class="field"><label for="${id}">${label}</label> `
    + `<input type="range" id="${id}-slider" min="0" step="1" aria-label="${label}">`
    + `<input type="text" id="${id}" size="${size}" autocomplete="off" spellcheck="false"></p>`;
  const row = (name, id, kind = "") => `<tr class="${kind}"><th scope="row">${name}</th>`
    + `${sides.map((side) => `<td data-head="${side.of}" data-of="${id}-${side.id}"></td>`).join("")}</tr>`;
  const group = (name) => `<tr class="group"><th colspan="3" scope="rowgroup">${name}</th></tr>`;
  const plural = (k) => (k === 0 ? "no error" : k === 1 ? "1 error" : `${PacWrap.grouped(String(k))} errors`);

  place.innerHTML = `
<form aria-label="Planner">
<div class="sides">${sides.map((side) => `
<fieldset class="${side.of}"><legend>${side.name} <small>${side.rate}, ${side.points}</small></legend>
${slider(`max-${side.id}`, "Ceiling", 7)}${slider(side.of, "Labels at hand", 7)}${text(`errors-${side.id}`, "Errors expected among them", 7)}
</fieldset>`).join("")}</div>
${slider("confidence", "Confidence of each ceiling", 7)}
<p class="field room"><label for="room">Room for a shift</label>
<select id="room"><option value="none">none</option><option value="tv">total variation</option><option value="ratio">density ratio</option></select>
<input type="text" id="size" size="7" aria-label="Size of the shift" autocomplete="off" spellcheck="false"></p>
</form>
<p id="plan-said" role="status"></p>
<figure><svg class="plot" id="plan-plot" width="100%" height="290" role="img" aria-label="Lowest ceiling against the number of labels, for 0, 1, 2, 5 and 10 errors among them, with the two choices made above"></svg>
<figcaption>The lowest ceiling that so many labels can keep, by the errors among them. Drag a point: it must not lie below the line of its errors.</figcaption></figure>
<div class="scroll"><table><thead><tr><th></th>${sides.map((side) => `<th scope="col" data-of="head-${side.id}"></th>`).join("")}</tr></thead><tbody>
${group("Labels needed, if so many of them are errors")}
${errors.map((k) => row(plural(k), `needed-${k}`)).join("")}
${row("as many as you expect", "needed-own")}
${group("What your labels are good for")}
${row("errors tolerated", "budget")}${row("exact confidence then", "sure")}${row("lowest ceiling, no error", "kept")}${row("lowest ceiling, with the errors you expect", "kept-own")}
${group("Labels needed without an error, if besides")}
${row("the threshold is chosen after looking (a curve)", "curve")}${row("one threshold must do (<code>raise</code>), the larger class", "raise")}${row("points of the class may shift, as above", "shifted")}
</tbody></table></div>
<p>In the shell: <code data-of="shell"></code><br>In Python: <code data-of="python"></code></p>`;

  const get = (id) => document.getElementById(id);
  const form = place.querySelector("form");
  const tell = (name, words) => { place.querySelector(`[data-of="${name}"]`).textContent = words; };
  const count = (n) => PacWrap.grouped(String(n));
  const percent = (rate) => PacWrap.ceiling(rate);
  // "5 %" or "0.05", from 0 to a half
  const share = (words) => {
    const [, digits, sign] = words.trim().match(/^(\d*\.?\d+(?:e-?\d+)?)\s*(%?)$/) || [];
    const value = sign ? Number(`${digits}e-2`) : Number(digits);
    return value >= 1e-6 && value <= 0.5 ? value : null;
  };
  const confident = (words) => {
    const [, digits, sign] = words.trim().match(/^(\d*\.?\d+)\s*(%?)$/) || [];
    const value = sign ? Number(`${digits}e-2`) : Number(digits);
    // in decimals, so that 95 % leaves 0.05 and not a little more
    return value >= 0.5 && value <= 0.999999 ? Number((1 - value).toFixed(12)) : null;
  };
  const whole = (words) => (words.trim() === "0" ? 0 : (PacWrap.points(words) || MOST + 1) <= MOST ? PacWrap.points(words) : null);
  const size = (words) => (Number(words) > 0 && Number(words) < 1e6 ? Number(words) : null);
  const sure = (delta) => PacWrap.least(Number((1 - delta).toFixed(12)), 6);
  const nearest = (list, x) => list.reduce((best, one, at) => (Math.abs(Math.log(one / x)) < Math.abs(Math.log(list[best] / x)) ? at : best), 0);

  // the picture: labels across and ceilings upwards, both on a log scale
  const plot = get("plan-plot");
  const [LEFT, RIGHT, TOP, LOW] = [10, 1e5, 0.5, 0.0005];
  const HEIGHT = 262;
  const across = (n) => Math.log(Math.min(Math.max(n, LEFT), RIGHT) / LEFT) / Math.log(RIGHT / LEFT);
  const down = (rate) => Math.log(TOP / Math.min(Math.max(rate, LOW), TOP)) / Math.log(TOP / LOW);
  const bound = (k, n, delta) => {
    let [low, high] = [0, 1];
    for (let i = 0; i < 40; i++) {
      const middle = (low + high) / 2;
      if (k < n && PacWrap.about(k, n, middle) <= delta) high = middle; else low = middle;
    }
    return high;
  };
  const draw = (delta) => {
    plot.textContent = "";
    const part = (kind, shape, words = "") => { PacWrap.drawn(plot, kind, shape).textContent = words; };
    for (const rate of [0.001, 0.01, 0.1]) {
      const y = HEIGHT * down(rate);
      part("line", { class: "grid", x1: 0, x2: "100%", y1: y, y2: y });
      part("text", { class: "level", x: 2, y: y - 4 }, percent(rate));
    }
    for (const n of [10, 100, 1000, 10000, 100000]) {
      const anchor = n === LEFT ? "start" : n === RIGHT ? "end" : "middle";
      part("text", { x: `${100 * across(n)}%`, y: HEIGHT + 18, "text-anchor": anchor }, n === LEFT ? "10 labels" : count(n));
      part("line", { class: "grid", x1: `${100 * across(n)}%`, x2: `${100 * across(n)}%`, y1: 0, y2: HEIGHT });
    }
    const inner = PacWrap.drawn(plot, "svg", { viewBox: "0 0 1000 1000", preserveAspectRatio: "none", width: "100%", height: HEIGHT });
    for (const k of errors) {
      const way = [];
      for (let step = 0; step <= 80; step++) {
        const n = Math.round(LEFT * (RIGHT / LEFT) ** (step / 80));
        const rate = bound(k, n, delta);
        if (rate <= TOP && rate >= LOW) way.push(`${(1000 * across(n)).toFixed(1)} ${(1000 * down(rate)).toFixed(1)}`);
      }
      PacWrap.drawn(inner, "path", { class: `errors k${k}`, d: `M${way.join("L")}` });
    }
    part("line", { class: "axis", x1: 0, x2: "100%", y1: HEIGHT, y2: HEIGHT });
    part("text", { class: "level", x: "99%", y: 16, "text-anchor": "end" }, `lines, from below: ${errors.join(", ")} errors`);
    PacWrap.drawn(plot, "g", { id: "plan-handles" });
  };

  const side = ({ id, rate, of }, delta, room) => {
    const [ceiling, n, k] = [PacWrap.value(get(`max-${id}`), share), PacWrap.value(get(of), whole), PacWrap.value(get(`errors-${id}`), whole)];
    const found = {};
    const set = (name, value) => { found[name] = value; tell(`${name}-${id}`, value); };
    const wait = "\u2013";
    tell(`head-${id}`, ceiling === null ? "state a ceiling" : `${of}, ${rate} \u2264 ${percent(ceiling)}`);
    // what the rate must be at calibration, so that it is below the ceiling after a shift
    const left = ceiling !== null && room ? room.before(ceiling) : 0;
    const known = left > 0 && delta !== null;
    const labels = (errors) => count(PacWrap.needed(left, delta, errors));
    for (const one of errors) set(`needed-${one}`, known ? labels(one) : wait);
    set("needed-own", known && k !== null ? `${labels(k)} (${plural(k)})` : wait);
    const budget = known && n !== null ? PacWrap.budget(n, left, delta) : undefined;
    const missing = budget === null ? PacWrap.needed(left, delta, 0) - n : 0;
    set("budget", budget === undefined ? wait : budget === null ? `too few, ${count(missing)} missing` : count(budget));
    set("sure", budget === undefined || budget === null ? wait : PacWrap.sure(n, left, budget));
    const least = (errors) => {
      const asked = delta !== null && n !== null && errors !== null && room;
      const kept = asked ? PacWrap.kept(n, delta, errors, room) : undefined;
      return kept === undefined ? wait : kept === null ? "none" : percent(kept);
    };
    set("kept", least(0));
    set("kept-own", least(k));
    for (const name of ["curve", "raise"]) {
      const listed = known && left === ceiling && costs[name][PacWrap.repr(delta)];
      const cost = listed && listed[PacWrap.repr(ceiling)];
      set(name, cost ? count(cost) : left === ceiling ? "at the stops of the sliders" : "without the shift only");
    }
    set("shifted", known && left < ceiling ? `${labels(0)} instead of ${count(PacWrap.needed(ceiling, delta, 0))}` : wait);
    return { ceiling, n, k, left, budget, missing };
  };

  const tied = (words) => words.replace(/(\d) (?=%)/g, "$1\u00a0");
  const shown = { delta: null };
  const update = () => {
    const delta = PacWrap.value(get("confidence"), confident);
    const kind = get("room").value;
    get("size").hidden = kind === "none";
    const far = kind === "none" ? 0 : PacWrap.value(get("size"), (words) => (kind === "ratio" && !(size(words) > 1) ? null : size(words)));
    const room = far === null ? null : PacWrap.rooms[kind](far);
    const found = sides.map((one) => side(one, delta, room));
    if (delta !== null && delta !== shown.delta) {
      draw(delta);
      shown.delta = delta;
    }
    const handles = get("plan-handles");
    handles.textContent = "";
    found.forEach(({ ceiling, n, k }, at) => {
      if (ceiling === null || !n) return;
      const [x, y] = [`${100 * across(n)}%`, HEIGHT * down(ceiling)];
      PacWrap.drawn(handles, "circle", { cx: x, cy: y, r: 9, class: sides[at].of });
    });
    // sliders stop where the fields are, or next to it
    sides.forEach(({ id, of }, at) => {
      const { ceiling, n } = found[at];
      const [first, second] = [get(`max-${id}-slider`), get(`${of}-slider`)];
      if (ceiling !== null) { first.value = nearest(ceilings, ceiling); PacWrap.say(first, percent(ceiling)); }
      if (n) { second.value = nearest(stops, n); PacWrap.say(second, `${count(n)} ${of} labels`); }
    });
    if (delta !== null) {
      get("confidence-slider").value = nearest(deltas, delta);
      PacWrap.say(get("confidence-slider"), sure(delta));
    }
    const said = get("plan-said");
    if (delta === null || room === null || found.some(({ ceiling, n }) => ceiling === null || n === null)) {
      said.textContent = "A field is not a number that can be planned with.";
      said.className = "partly";
      return;
    }
    const short = found.map(({ missing, n, left }, at) => (left <= 0 ? `the shift leaves nothing of the ${sides[at].rate}` : missing ? `${count(n)} ${sides[at].of} labels are ${count(missing)} too few` : "")).filter(Boolean);
    const over = found.map(({ budget, k, n }, at) => (typeof budget === "number" && k > budget
      ? `${count(n)} ${sides[at].of} labels may show ${plural(budget)}, not ${count(k)}` : "")).filter(Boolean);
    const tolerated = found.map(({ budget, n }, at) => `${count(n)} ${sides[at].of} labels may show ${plural(budget)}`);
    const after = kind === "none" ? "" : ", after every such shift";
    const asked = found.map(({ ceiling }, at) => `${sides[at].rate} \u2264 ${percent(ceiling)}`).join(" and ");
    said.className = short.length || over.length ? "none" : "certified";
    said.textContent = tied(short.length || over.length
      ? `Not yet: ${[...short, ...over].join("; ")}.`
      : `Enough: ${tolerated.join(", ")}. Then ${asked} hold${after}, each with a confidence of ${sure(delta)}, both together with ${sure(2 * delta)}.`);
    const [fpr, fnr] = found.map(({ ceiling }) => PacWrap.repr(ceiling));
    const shift = far ? PacWrap.repr(far) : null;
    tell("shell", `pac-wrap plan --max-fpr ${fpr} --max-fnr ${fnr} --delta ${PacWrap.repr(delta)}${shift ? ` --shift ${kind}:${shift}` : ""}`);
    const distance = kind === "tv" ? "TotalVariation" : "DensityRatio";
    const inside = shift ? `, shift=${distance}(${shift})` : "";
    tell("python", `plan(Guarantee(${fpr}, ${fnr}, ${PacWrap.repr(delta)}, ${PacWrap.repr(delta)}${inside}), normal=${found[0].n}, anomalous=${found[1].n})`);
  };

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", ({ target }) => {
    const at = Number(target.value);
    for (const { id, of } of sides) {
      if (target.id === `max-${id}-slider`) get(`max-${id}`).value = percent(ceilings[at]);
      if (target.id === `${of}-slider`) get(of).value = count(stops[at]);
    }
    if (target.id === "confidence-slider") get("confidence").value = sure(deltas[at]);
    if (target.id === "room") get("size").value = { none: "", tv: "0.01", ratio: "2" }[target.value];
    update();
  });
  let held = null;
  PacWrap.dragged(plot, () => { held = null; }, (x, y) => {
    const tall = (y * plot.getBoundingClientRect().height) / HEIGHT;
    if (held === null) {
      const far = sides.map(({ id, of }) => Math.abs(across(whole(get(of).value) || LEFT) - x) + Math.abs(down(share(get(`max-${id}`).value) || TOP) - tall));
      held = far[0] <= far[1] ? 0 : 1;
    }
    const { id, of } = sides[held];
    get(of).value = count(stops[nearest(stops, LEFT * (RIGHT / LEFT) ** Math.min(1, Math.max(0, x)))]);
    get(`max-${id}`).value = percent(ceilings[nearest(ceilings, TOP * (LOW / TOP) ** tall)]);
    update();
  });

  const start = { "max-fpr": "1 %", "max-fnr": "5 %", normal: "2,000", anomalous: "140", "errors-fpr": "10", "errors-fnr": "2", confidence: "95 %" };
  for (const [id, value] of Object.entries(start)) get(id).value = value;
  for (const { id, of } of sides) {
    get(`max-${id}-slider`).max = ceilings.length - 1;
    get(`${of}-slider`).max = stops.length - 1;
  }
  get("confidence-slider").max = deltas.length - 1;
  update();
})();
