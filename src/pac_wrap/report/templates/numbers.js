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

  const told = (share) => (share >= 0.01 ? 3 : 2);
  const ceiling = (rate) => `${rounded(rate, parts(rate).digits.length <= 4 ? 4 : told(rate), true, 2)} %`;
  const least = (share) => `${rounded(share, told(share), false, 2)} %`;
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
    const tau = t + 0;  // a certificate has no threshold -0
    const values = { threshold: repr(tau), rule: repr(rules ? rules[place] : tau) };
    const [pattern, filled] = [new RegExp(`"${mark}(\\w+)"`, "g"), (_, name) => values[name]];
    for (const [name, side, step] of [["fpr", normal, i], ["fnr", anomalous, j]]) {
      if (!both.includes(name)) continue;
      values[name] = repr(side.bounds[step]);
      values[`${name}_errors`] = String(side.errors[step]);
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
