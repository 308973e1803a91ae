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
<p class="field"><label for="tolerance">Shift to tolerate</label>
<select id="tolerance"><option value="none">none</option><option value="tv">total variation</option><option value="ratio">density ratio</option></select>
<input type="text" id="size" size="7" aria-label="Size of the shift" autocomplete="off" spellcheck="false"></p>
</form>
<p id="plan-said" role="status"></p>
<figure><svg class="plot" id="plan-plot" width="100%" height="290" role="img" aria-label="Lowest ceiling against the number of labels, for 0, 1, 2, 5 and 10 errors among them, with the choices above for both classes"></svg>
<figcaption>The lowest ceiling that a number of labels can keep, by the errors among them. Drag a point. It must not lie below the line for its number of errors.</figcaption></figure>
<div class="scroll"><table><thead><tr><th></th>${sides.map((side) => `<th scope="col" data-of="head-${side.id}"></th>`).join("")}</tr></thead><tbody>
${group("Labels needed, by errors among them")}
${errors.map((k) => row(plural(k), `needed-${k}`)).join("")}
${row("the errors you expect", "needed-own")}
${group("What your labels can certify")}
${row("errors tolerated", "budget")}${row("exact confidence", "sure")}${row("lowest ceiling, no error", "kept")}${row("lowest ceiling, with the errors you expect", "kept-own")}
${group("Labels needed without an error, if in addition")}
${row("the threshold is chosen after looking (a curve)", "curve")}${row("the rule must decide every point (<code>raise</code>), the larger class", "raise")}${row("the class may shift, as above", "shifted")}
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
  const sure = (delta) => `${PacWrap.rounded(Number((1 - delta).toFixed(12)), 6, false, 2)} %`;
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

  const side = ({ id, rate, of }, delta, tolerance) => {
    const [ceiling, n, k] = [PacWrap.value(get(`max-${id}`), share), PacWrap.value(get(of), whole), PacWrap.value(get(`errors-${id}`), whole)];
    const found = {};
    const set = (name, value) => { found[name] = value; tell(`${name}-${id}`, value); };
    const wait = "\u2013";
    tell(`head-${id}`, ceiling === null ? "state a ceiling" : `${of}, ${rate} \u2264 ${percent(ceiling)}`);
    // the ceiling at calibration: below it, the rate stays below its own ceiling after the shift
    const left = ceiling !== null && tolerance ? tolerance.before(ceiling) : 0;
    const known = left > 0 && delta !== null;
    const labels = (errors) => count(PacWrap.needed(left, delta, errors));
    for (const one of errors) set(`needed-${one}`, known ? labels(one) : wait);
    set("needed-own", known && k !== null ? `${labels(k)} (${plural(k)})` : wait);
    const budget = known && n !== null ? PacWrap.budget(n, left, delta) : undefined;
    const missing = budget === null ? PacWrap.needed(left, delta, 0) - n : 0;
    set("budget", budget === undefined ? wait : budget === null ? `too few, ${count(missing)} missing` : count(budget));
    set("sure", budget === undefined || budget === null ? wait : PacWrap.sure(n, left, budget));
    const least = (errors) => {
      const asked = delta !== null && n !== null && errors !== null && tolerance;
      const kept = asked ? PacWrap.kept(n, delta, errors, tolerance) : undefined;
      return kept === undefined ? wait : kept === null ? "none" : percent(kept);
    };
    set("kept", least(0));
    set("kept-own", least(k));
    for (const name of ["curve", "raise"]) {
      const listed = known && left === ceiling && costs[name][PacWrap.repr(delta)];
      const cost = listed && listed[PacWrap.repr(ceiling)];
      set(name, cost ? count(cost) : left === ceiling ? "only for values on the sliders" : "only without a shift");
    }
    set("shifted", known && left < ceiling ? `${labels(0)} instead of ${count(PacWrap.needed(ceiling, delta, 0))}` : wait);
    return { ceiling, n, k, left, budget, missing };
  };

  const tied = (words) => words.replace(/(\d) (?=%)/g, "$1\u00a0");
  const shown = { delta: null };
  const update = () => {
    const delta = PacWrap.value(get("confidence"), confident);
    const kind = get("tolerance").value;
    get("size").hidden = kind === "none";
    const far = kind === "none" ? 0 : PacWrap.value(get("size"), (words) => (kind === "ratio" && !(size(words) > 1) ? null : size(words)));
    const tolerance = far === null ? null : PacWrap.tolerances[kind](far);
    const found = sides.map((one) => side(one, delta, tolerance));
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
    if (delta === null || tolerance === null || found.some(({ ceiling, n }) => ceiling === null || n === null)) {
      said.textContent = "A field is empty or holds no usable number.";
      said.className = "partly";
      return;
    }
    const short = found.map(({ missing, n, left }, at) => (left <= 0 ? `the shift uses up the whole ${sides[at].rate} ceiling` : missing ? `${count(n)} ${sides[at].of} labels are ${count(missing)} too few` : "")).filter(Boolean);
    const over = found.map(({ budget, k, n }, at) => (typeof budget === "number" && k > budget
      ? `${count(n)} ${sides[at].of} labels may show ${plural(budget)}, not ${count(k)}` : "")).filter(Boolean);
    const tolerated = found.map(({ budget, n }, at) => `${count(n)} ${sides[at].of} labels may show ${plural(budget)}`);
    const after = kind === "none" ? "" : " after every shift of that size";
    const asked = found.map(({ ceiling }, at) => `${sides[at].rate} \u2264 ${percent(ceiling)}`).join(" and ");
    said.className = short.length || over.length ? "none" : "certified";
    said.textContent = tied(short.length || over.length
      ? `Not yet: ${[...short, ...over].join("; ")}.`
      : `Enough: ${tolerated.join(", ")}. Then ${asked} hold${after}, each with a confidence of ${sure(delta)}, both together with ${PacWrap.together(found.map(({ n, left, budget }) => [n, left, budget]))}.`);
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
    if (target.id === "tolerance") get("size").value = { none: "", tv: "0.01", ratio: "2" }[target.value];
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
