// The page: its controls choose a threshold or two ceilings, and everything else follows.
(() => {
  const form = document.getElementById("explorer");
  if (!form) return;
  const curve = PacWrap.read(document.getElementById("curve").textContent);
  const { normal, anomalous, places, rules, window: [low, high] } = curve;
  const [plot, handles, gap] = ["plot", "handles", "gap"].map((id) => document.getElementById(id));
  const [slider, typed, save] = ["threshold", "typed", "save"].map((id) => document.getElementById(id));
  const ceilings = { "max-fpr": normal, "max-fnr": anomalous };
  const nearest = (t) => {
    const place = Math.min(PacWrap.first(places, (one) => one >= t), places.length - 1);
    return place && t - places[place - 1] < places[place] - t ? place - 1 : place;
  };
  const chosen = { mode: "one", t: curve.start, place: nearest(curve.start), file: null };
  const said = (t) => String(Number(t.toPrecision(6))).replace("-", "\u2212");
  const tell = (name, words) => { form.querySelector(`[data-of="${name}"]`).textContent = words; };
  const at = (x) => `${Math.min(100, Math.max(0, (100 * (x - low)) / (high - low)))}%`;

  // the two thresholds that keep the ceilings; one where one is enough
  const thresholds = () => {
    if (chosen.mode === "one") return [chosen.t, chosen.t];
    const [i, j] = Object.keys(ceilings).map((id) => Number(document.getElementById(id).value));
    const [from, below] = [PacWrap.nextUp(normal.scores[i]), anomalous.scores[j]];
    if (from > below) return [below, from];
    const place = Math.min(PacWrap.first(places, (one) => one >= from), places.length - 1);
    [chosen.t, chosen.place] = [places[place], place];
    return [chosen.t, chosen.t];
  };

  const draw = (lines) => {
    handles.textContent = "";
    for (const x of lines) {
      PacWrap.drawn(handles, "line", { x1: at(x), x2: at(x), y1: 0, y2: 276 });
      PacWrap.drawn(handles, "circle", { cx: at(x), cy: 125, r: 9 });
    }
    const width = Math.max(0, parseFloat(at(lines[lines.length - 1])) - parseFloat(at(lines[0])));
    gap.setAttribute("x", at(lines[0]));
    gap.setAttribute("width", `${width}%`);
  };

  const update = () => {
    const [ends, points] = ["prevalence", "points"].map((id) => PacWrap.value(document.getElementById(id), PacWrap[id]));
    for (const part of form.querySelectorAll(".one, .two")) part.hidden = !part.classList.contains(chosen.mode);
    const [below, from] = thresholds();
    const single = below === from;
    const found = PacWrap.readout(curve, below, from, ...(ends || [0.5, 0.5]), points || 1);
    for (const [name, words] of Object.entries(found)) {
      const free = ["fpr", "fnr"].includes(name);
      const missing = (!free && !ends && "state a share") || (!free && name !== "precision" && !points && "state a number");
      if (name !== "right") tell(name, missing || words);
    }
    for (const [id, side] of Object.entries(ceilings)) {
      const input = document.getElementById(id);
      PacWrap.say(input, side.bounds.length ? PacWrap.ceiling(side.bounds[input.value]) : "too few labels");
    }
    chosen.file = single ? PacWrap.certificate(curve, chosen.t, chosen.place) : null;
    document.getElementById("certain").hidden = !chosen.file;
    document.getElementById("uncertain").hidden = single;
    if (single) {
      slider.value = nearest(chosen.t);
      PacWrap.say(slider, `${said(chosen.t)}: FPR ${found.fpr}, FNR ${found.fnr}`);
      if (document.activeElement !== typed) {
        typed.value = said(chosen.t).replace("\u2212", "-");
        typed.setAttribute("aria-invalid", "false");
      }
      tell("rule", said(chosen.t));
    } else {
      const asked = Object.entries(ceilings).map(([id, side]) => `--${id} ${side.bounds[document.getElementById(id).value]}`);
      for (const [name, words] of [["below", said(below)], ["from", said(from)], ["command", `pac-wrap calibrate \u2026 ${asked.join(" ")}`]]) {
        tell(name, words);
      }
    }
    draw(single ? [from] : [below, from]);
  };

  const move = (share) => {
    const x = low + share * (high - low);
    if (chosen.mode === "one") {
      chosen.place = nearest(x);
      chosen.t = places[chosen.place];
    } else {
      const [below, from] = thresholds();
      if (chosen.held === null) chosen.held = Math.abs(x - below) < Math.abs(x - from) ? "max-fnr" : "max-fpr";
      const step = chosen.held === "max-fpr" ? PacWrap.alarmStep(curve, x) : PacWrap.missStep(curve, x);
      document.getElementById(chosen.held).value = step;
    }
    update();
  };

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => {
    if (event.target.name === "mode") chosen.mode = event.target.value;
    if (event.target === slider) {
      chosen.place = Number(slider.value);
      chosen.t = places[chosen.place];
    }
    if (event.target === typed) {
      const t = PacWrap.value(typed, (text) => (text.trim() && Number.isFinite(Number(text)) ? Number(text) : null));
      if (t === null) return;
      chosen.place = nearest(t);
      chosen.t = rules ? places[chosen.place] : t;
    }
    update();
  });
  PacWrap.dragged(plot, () => { chosen.held = null; }, move);
  save.addEventListener("click", () => {
    save.download = `certificate-from-${chosen.t}.json`;
    save.href = URL.createObjectURL(new Blob([chosen.file], { type: "application/json" }));
  });
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((part) => { part.open = true; }));

  slider.max = places.length - 1;
  Object.entries(ceilings).forEach(([id, side], place) => {
    const input = document.getElementById(id);
    input.max = Math.max(0, side.bounds.length - 1);
    input.value = Math.max(0, PacWrap.first(side.bounds, (bound) => bound > curve.ceilings[place]) - 1);
  });
  // where one class has no bound, no ceiling of its rate can be chosen
  form.querySelector("fieldset").hidden = !(normal.bounds.length && anomalous.bounds.length);
  form.hidden = false;
  update();
})();
