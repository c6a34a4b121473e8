"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const stage = document.getElementById("stage");
  if (!stage || !data.users.length) return;
  const $ = (id) => document.getElementById(id);
  const svg = stage.querySelector("svg"), NS = svg.namespaceURI;
  const map = data.map, grid = map.kind === "grid", words = data.words;
  const state = { user: 0, t: 0, view: words.view, timer: 0, show: {}, zoom: 1, dx: 0, dy: 0 };

  const el = (name, attributes, parent) => {
    const node = document.createElementNS(NS, name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    if (parent) parent.appendChild(node);
    return node;
  };
  const html = (name, text, parent, cls) => {
    const node = document.createElement(name);
    if (text !== undefined) node.textContent = text; // text only: labels are never markup
    if (cls) node.className = cls;
    if (parent) parent.appendChild(node);
    return node;
  };

  // -- the map's coordinates: km, north up, (x, y) of a location's middle
  const place = new Map();
  if (!grid) map.cells.forEach((cell, k) => place.set(cell, [map.x[k], map.y[k]]));
  const at = (cell) => grid
    ? [(cell % map.cols + 0.5) * map.dx, (map.rows - Math.floor(cell / map.cols) - 0.5) * map.dy]
    : [place.get(cell)[0], map.height_km - place.get(cell)[1]];
  const distance = (a, b) => { const [x, y] = at(a), [v, w] = at(b); return Math.hypot(x - v, y - w); };
  const known = (list, t) => list && list[t] !== undefined && list[t] !== null && list[t] >= 0;
  const km = (v) => v === null || v === undefined ? "unknown" : v.toFixed(3) + " km";
  const name = (cell) => {
    let text = grid ? `row ${Math.floor(cell / map.cols)}, column ${cell % map.cols}` : `location ${cell}`;
    if (map.latlon) {
      const [lat, north, lon, east] = map.latlon;
      const x = grid ? cell % map.cols * map.dx : map.x0 + place.get(cell)[0], y = grid ? Math.floor(cell / map.cols) * map.dy : map.y0 + place.get(cell)[1];
      text += ` (${(lat + north * y).toFixed(4)}, ${(lon + east * x).toFixed(4)})`;
    }
    return text;
  };

  // -- layers, from the ground up
  const defs = el("defs", {}, svg);
  const pattern = el("pattern", { id: "lattice", patternUnits: "userSpaceOnUse", width: map.dx, height: map.dy }, defs);
  const lattice = el("path", { class: "cells", d: `M${map.dx} 0H0V${map.dy}` }, pattern);
  const pad = grid ? 0 : 0.02 * Math.max(map.width_km, map.height_km, map.dx);
  const ground = { x: -pad, y: -pad, width: map.width_km + 2 * pad, height: map.height_km + 2 * pad };
  const floor = el("rect", { class: "ground", ...ground }, svg);
  const squares = grid ? el("rect", { ...ground, fill: "url(#lattice)" }, svg) : null;
  const borders = el("path", { class: "borders", d: outline() }, svg);
  const layer = {};
  for (const key of ["possible", "belief", "repaired", "trail", "guess", "marks", "axes"]) layer[key] = el("g", { "data-layer": key }, svg);

  function outline() {
    if (!data.outline) return "";
    const [across, upwards] = data.outline, parts = [], top = map.rows;
    if (!grid) { for (let k = 0; k < across.length; k += 2) parts.push(`M${at(across[k]).join(" ")}L${at(across[k + 1]).join(" ")}`); return parts.join(""); }
    for (let k = 0; k < across.length; k += 3) parts.push(`M${across[k + 1] * map.dx} ${(top - across[k]) * map.dy}H${across[k + 2] * map.dx}`);
    for (let k = 0; k < upwards.length; k += 3) parts.push(`M${upwards[k] * map.dx} ${(top - upwards[k + 1]) * map.dy}V${(top - upwards[k + 2]) * map.dy}`);
    return parts.join("");
  }

  const own = () => data.users[state.user];
  const steps = () => own().released.length;
  const silence = (t) => own().at && t > 0 ? own().at[t] - own().at[t - 1] - 1 : 0; // steps skipped before this one

  // -- what part of the map is seen
  function box() {
    const u = own(), whole = [ground.x, ground.y, ground.width, ground.height];
    if (state.view === "map") return whole;
    const cells = [];
    const take = (t) => { for (const list of [u.true, u.released, u.guess]) if (known(list, t)) cells.push(list[t]); };
    if (state.view === "near") { take(state.t); if (!cells.length) for (let t = state.t; t >= 0 && !cells.length; t--) take(t); }
    if (state.view === "trace" || !cells.length) for (let t = 0; t < steps(); t++) take(t);
    if (state.view === "near") for (const b of [u.belief[state.t]]) if (b) for (let k = 0; k < Math.min(b.length, 80); k += 2) cells.push(b[k]);
    if (!cells.length) return whole;
    const xs = cells.map((c) => at(c)[0]), ys = cells.map((c) => at(c)[1]);
    const low = [Math.min(...xs), Math.min(...ys)], high = [Math.max(...xs), Math.max(...ys)];
    const unit = grid ? Math.max(map.dx, map.dy) : 0.02 * Math.max(map.width_km, map.height_km, map.dx);
    const margin = (state.view === "near" ? 3 : 4) * unit;
    return [low[0] - margin, low[1] - margin, high[0] - low[0] + 2 * margin, high[1] - low[1] + 2 * margin];
  }

  const zoomed = ([x, y, w, h]) => [x + w / 2 + state.dx - w / state.zoom / 2, y + h / 2 + state.dy - h / state.zoom / 2, w / state.zoom, h / state.zoom];
  function zoom(by) { state.zoom = Math.min(64, Math.max(0.25, state.zoom * by)); draw(); }
  function home() { Object.assign(state, { zoom: 1, dx: 0, dy: 0 }); draw(); }

  // -- latitude and longitude along the sides (km where the map has none)
  const round = (longest) => { const power = 10 ** Math.floor(Math.log10(longest)); return power * [5, 2, 1].find((k) => power * k <= longest); };
  function spelt(value, step, marks) {
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9)), text = Math.abs(value).toFixed(digits);
    return map.latlon ? `${text}\u00b0${+text === 0 ? "" : ` ${value > 0 ? marks[0] : marks[1]}`}` : `${value.toFixed(digits)} km`;
  }
  function axes(x, y, w, h, px) {
    const [lat, north, lon, east] = map.latlon || [0, 1, 0, 1];
    // degrees of a place on the drawing, whose middle of the first cell is where the map counts from
    const x0 = grid ? -map.dx / 2 : map.x0, y0 = map.height_km + (grid ? -map.dy / 2 : map.y0);
    const text = (said, a, b, anchor) => { for (const cls of ["halo", "degrees"]) el("text", { class: cls, x: a, y: b, "font-size": 11 * px, "stroke-width": cls === "halo" ? 3 * px : 0, "text-anchor": anchor }, layer.axes).textContent = said; };
    const tick = (d) => el("path", { class: "tick", d, "stroke-width": px }, layer.axes);
    let from = lon + east * (x + x0), to = from + east * w, step = round((to - from) / Math.max(2, w / px / 150));
    for (let k = Math.ceil(from / step); k * step < to; k++) {
      const at = (k * step - lon) / east - x0;
      if (at < x + 60 * px || at > x + w - 40 * px) continue;
      tick(`M${at} ${y + h}v${-5 * px}`);
      text(spelt(k * step, step, "EW"), at, y + h - 8 * px, "middle");
    }
    from = lat + north * (y0 - y - h); to = from + north * h; step = round((to - from) / Math.max(2, h / px / 120));
    for (let k = Math.ceil(from / step); k * step < to; k++) {
      const at = y0 - (k * step - lat) / north;
      if (at < y + 150 * px || at > y + h - 60 * px) continue;
      tick(`M${x} ${at}h${5 * px}`);
      text(spelt(k * step, step, "NS"), x + 8 * px, at + 4 * px, "start");
    }
  }

  function cellPath(runs) { // of a list of (first, how many)
    const parts = [];
    for (let k = 0; k < runs.length; k += 2) {
      let first = runs[k], left = runs[k + 1];
      if (!grid) { for (; left > 0; left--, first++) parts.push(dot(first)); continue; }
      while (left > 0) { // a run may go on in the next row
        const col = first % map.cols, row = Math.floor(first / map.cols), width = Math.min(left, map.cols - col);
        let tall = 1;
        if (width === map.cols) tall = Math.floor(left / map.cols); // whole rows in one piece
        parts.push(`M${col * map.dx} ${(map.rows - row) * map.dy}h${width * map.dx}v${-tall * map.dy}h${-width * map.dx}z`);
        first += width * tall; left -= width * tall;
      }
    }
    return parts.join("");
  }
  let spot = 1;
  function dot(cell) { const [x, y] = at(cell), r = 5 * spot; return `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`; }

  function draw() {
    const u = own(), t = state.t, on = state.show;
    const [x, y, w, h] = zoomed(box());
    svg.setAttribute("viewBox", [x, y, w, h].map((v) => +v.toFixed(5)).join(" "));
    const size = svg.getBoundingClientRect(), perKm = Math.max(1e-9, Math.min((size.width || 600) / w, (size.height || 500) / h)), px = 1 / perKm;
    spot = px;
    floor.setAttribute("stroke-width", 1.5 * px);
    borders.setAttribute("stroke-width", 1.2 * px);
    borders.style.display = on.policy === false ? "none" : "";
    lattice.setAttribute("stroke-width", px);
    if (squares) squares.style.display = map.dx * perKm < 6 ? "none" : "";
    for (const key in layer) layer[key].replaceChildren();

    const runs = u.domain[t], belief = u.belief[t];
    if (on.possible !== false && runs && runs.length) el("path", { class: "possible", d: cellPath(runs), "stroke-width": 0.8 * px }, layer.possible);
    if (on.belief !== false && belief && belief.length) {
      const top = belief[1];
      for (let k = 0; k < belief.length; k += 2) {
        const strength = Math.sqrt(belief[k + 1] / top) * 0.85;
        el("path", { class: "belief", d: cellPath([belief[k], 1]), opacity: strength.toFixed(3) }, layer.belief);
      }
    }
    const joined = u.edges[t];
    if (on.repaired !== false && joined) for (let k = 0; k < joined.length; k += 2) {
      const [a, b] = at(joined[k]), [c, d] = at(joined[k + 1]);
      el("line", { class: "repaired", x1: a, y1: b, x2: c, y2: d, "stroke-width": 2.2 * px, "stroke-dasharray": `${5 * px} ${3 * px}` }, layer.repaired);
    }
    if (on.trail !== false && data.mode === "traces") for (const [list, cls] of [[u.released, "trail-released"], [u.true, "trail-true"]]) {
      if (!list) continue;
      let points = [];
      for (let k = t; k >= Math.max(0, t - 30); k--) {
        if (known(list, k)) points.push(at(list[k]).map((v) => v.toFixed(4)).join(","));
        if (silence(k)) break; // nobody knows the way through a long silence
      }
      if (points.length > 1) el("polyline", { class: cls, points: points.join(" "), "stroke-width": 2 * px, "stroke-dasharray": cls === "trail-released" ? `${4 * px} ${4 * px}` : "none" }, layer.trail);
    }
    if (on.guess !== false && known(u.guess, t)) {
      const [a, b] = at(u.guess[t]), hidden = u.guess[t] === u.released[t] || known(u.true, t) && u.guess[t] === u.true[t], r = (hidden ? 13 : 9) * px;
      for (const [cls, width] of [["halo", 5], ["mark-guess", 2.6]]) el("path", { class: cls, d: `M${a - r} ${b - r}L${a + r} ${b + r}M${a + r} ${b - r}L${a - r} ${b + r}`, "stroke-width": width * px }, layer.guess);
    }
    if (known(u.true, t)) { const [a, b] = at(u.true[t]); el("circle", { class: "mark-true", cx: a, cy: b, r: 7 * px, "stroke-width": 2 * px }, layer.marks); }
    if (known(u.released, t)) {
      const [a, b] = at(u.released[t]), r = (known(u.true, t) && u.true[t] === u.released[t] ? 13 : 9) * px, same = r > 10 * px;
      el("path", { class: "mark-released", d: `M${a} ${b - r}L${a + r} ${b}L${a} ${b + r}L${a - r} ${b}z`, "stroke-width": 2 * px, ...(same ? { "fill-opacity": 0.55 } : {}) }, layer.marks);
      if (same) layer.marks.appendChild(layer.marks.firstChild); // the true location stays to be seen
    }
    const across = (size.width || 600) * px, down = (size.height || 500) * px;
    axes(x + (w - across) / 2, y + (h - down) / 2, across, down, px);
    const bar = round(Math.min(w, across) / 3);
    stage.dataset.zoom = state.zoom;
    $("bar").style.width = `${bar * perKm}px`;
    $("bar-text").textContent = bar >= 1 ? `${bar} km` : `${Math.round(bar * 1000)} m`;
    stage.dataset.step = t;
    stage.dataset.user = state.user;
    tell();
    chart();
  }

  // -- the same in words
  const label = (t) => own().times ? own().times[t] || null : data.steps ? data.steps[t] : null;
  function row(dl, term, text, key) { html("dt", term, dl); const dd = html("dd", text, dl); if (key) dd.dataset.key = key; }
  function tell() {
    const u = own(), t = state.t, dl = $("readout-facts"), badges = $("badges");
    const when = label(t) !== null ? `: ${label(t)}` : "";
    $("readout-title").textContent = `${words.step} ${t + words.first} of ${steps() - 1 + words.first}${when}`;
    dl.replaceChildren(); badges.replaceChildren();
    if (silence(t)) row(dl, "Silent before", `${silence(t).toLocaleString("en")} steps`, "silent");
    if (u.true) row(dl, words.true, known(u.true, t) ? name(u.true[t]) : "unknown", "true");
    if (!words.example) row(dl, "Released", known(u.released, t) ? name(u.released[t]) : "nothing at this step", "released");
    if (known(u.true, t) && known(u.released, t)) row(dl, "Release is off by", km(distance(u.true[t], u.released[t])), "off");
    if (known(u.guess, t)) {
      row(dl, "Best guess so far", name(u.guess[t]), "guess");
      row(dl, "which expects to be off by", km(u.guess_km[t]), "guess_km");
      if (known(u.true, t)) row(dl, "and is off by", km(distance(u.true[t], u.guess[t])), "guess_off");
      row(dl, "Adversary is unsure by", u.bits[t] === null ? "unknown" : `${u.bits[t].toFixed(2)} bits`, "bits");
    }
    if (known(u.released, t) || words.example) {
      const size = u.domain_size[t];
      row(dl, words.domain, `${size.toLocaleString("en")} location${size === 1 ? "" : "s"}`, "domain_size");
      if (!u.domain[t] && size) row(dl, "On the map", "left out to keep the file small");
      const shown = u.belief[t];
      if (shown && shown.length) {
        let mass = 0;
        for (let k = 1; k < shown.length; k += 2) mass += shown[k];
        row(dl, "Likeliest", `${(100 * shown[1]).toFixed(1)} %` + (mass < 0.995 ? ` (the ${shown.length / 2} drawn hold ${(100 * mass).toFixed(1)} %)` : ""), "likeliest");
      }
    }
    const flag = (cls, text) => html("span", text, badges, `badge ${cls}`);
    if (u.surrogate && u.surrogate[t]) flag("surrogate", "surrogate: true place was ruled out");
    if (u.exposed && u.exposed[t]) flag("exposed", "exposed: only one place possible");
    if (u.added && u.added[t]) flag("repaired", `repaired: ${u.added[t]} edge${u.added[t] === 1 ? "" : "s"} added`);
    if (!badges.childElementCount && data.mode === "traces") flag("quiet", known(u.released, t) ? "no flags" : "no release");
    const say = `${words.step} ${t + words.first}. ` + [...dl.children].map((n) => n.textContent).join(" ");
    $("map-title").textContent = say;
    if (!state.timer) $("live").textContent = say;
    $("scrub").value = t;
    $("scrub").setAttribute("aria-valuetext", `${words.step} ${t + words.first} of ${steps() - 1 + words.first}${when}`);
    $("user").value = state.user;
  }

  // -- errors of this user along the way
  const timeline = $("timeline");
  const series = () => {
    const u = own(), out = {};
    out.release = u.released.map((z, t) => !known(u.released, t) ? null : known(u.true, t) ? distance(u.true[t], z) : u.true ? null : u.release_km[t]);
    out.guess = u.guess.map((g, t) => !known(u.released, t) || !known(u.guess, t) ? null : known(u.true, t) ? distance(u.true[t], g) : u.true ? null : u.guess_km[t]);
    return out;
  };
  function chart() {
    if (!timeline) return;
    const u = own(), lines = series(), W = timeline.getBoundingClientRect().width || 320, H = 130, left = 34, right = 6, top = 8, bottom = 34, n = steps();
    const peak = Math.max(1e-9, ...lines.release.filter((v) => v !== null), ...lines.guess.filter((v) => v !== null)) * 1.05;
    const X = (t) => left + (n > 1 ? t / (n - 1) : 0.5) * (W - left - right), Y = (v) => H - bottom - v / peak * (H - top - bottom);
    timeline.setAttribute("viewBox", `0 0 ${W} ${H}`);
    timeline.replaceChildren();
    for (const v of [0, peak / 1.05]) { el("line", { class: "rule", x1: left, x2: W - right, y1: Y(v), y2: Y(v) }, timeline); el("text", { x: left - 4, y: Y(v) + 4, "text-anchor": "end" }, timeline).textContent = v === 0 ? "0" : v.toPrecision(2); }
    el("text", { x: W - right, y: H - 2, "text-anchor": "end" }, timeline).textContent = "step";
    el("text", { x: left, y: H - 2 }, timeline).textContent = ["km", u.added && u.added.some((v) => v) ? "bars: repaired" : "", [u.exposed, u.surrogate].some((l) => l && l.some((v) => v)) ? "dots: flagged" : ""].filter((v) => v).join("; ");
    for (const [key, list] of Object.entries(lines)) {
      let d = "", pen = false;
      list.forEach((v, t) => { if (silence(t)) pen = false; if (v === null) pen = false; else { d += `${pen ? "L" : "M"}${X(t).toFixed(1)} ${Y(v).toFixed(1)}`; if (!pen) d += "h0.01"; pen = true; } });
      el("path", { class: `line ${key}`, d }, timeline);
    }
    const marks = [];
    for (let t = 0; t < n; t++) {
      if (u.added && u.added[t]) marks.push(`M${X(t).toFixed(1)} ${H - bottom + 6}v6`);
      if ((u.exposed && u.exposed[t]) || (u.surrogate && u.surrogate[t])) el("circle", { class: "tick-flag", cx: X(t), cy: H - bottom + 17, r: 2.5 }, timeline);
    }
    el("path", { class: "tick-repaired", d: marks.join("") }, timeline);
    el("line", { class: "cursor", x1: X(state.t), x2: X(state.t), y1: top - 4, y2: H - bottom + 4 }, timeline);
    timeline.onclick = (event) => { const r = timeline.getBoundingClientRect(); go(Math.round((event.clientX - r.left - left) / (W - left - right) * (n - 1))); };
  }

  // -- moving about
  function go(t) { stop(); state.t = Math.max(0, Math.min(steps() - 1, t)); draw(); }
  function choose(k) { stop(); state.user = (k + data.users.length) % data.users.length; state.t = Math.min(state.t, steps() - 1); $("scrub").max = steps() - 1; draw(); }
  function stop() { if (state.timer) { clearInterval(state.timer); state.timer = 0; button(); } }
  function button() { const on = !!state.timer; $("play").setAttribute("aria-pressed", on); $("play").textContent = on ? "Pause" : "Play"; }
  function play() {
    if (state.timer) { stop(); tell(); return; }
    if (state.t >= steps() - 1) state.t = 0;
    state.timer = setInterval(() => { if (state.t >= steps() - 1) { stop(); tell(); return; } state.t++; draw(); }, 600);
    button(); draw();
  }
  data.users.forEach((u, k) => { const option = html("option", u.label, $("user")); option.value = k; });
  $("scrub").max = steps() - 1;
  $("prev").onclick = () => go(state.t - 1);
  $("next").onclick = () => go(state.t + 1);
  $("play").onclick = play;
  $("scrub").oninput = (event) => go(+event.target.value);
  $("user").onchange = (event) => choose(+event.target.value);
  for (const input of document.querySelectorAll("[data-show]")) input.onchange = () => { state.show[input.dataset.show] = input.checked; draw(); };
  for (const input of document.querySelectorAll("[name=view]")) input.onchange = () => { state.view = input.value; home(); };
  $("zoom-in").onclick = () => zoom(1.6);
  $("zoom-out").onclick = () => zoom(1 / 1.6);
  $("zoom-home").onclick = home;
  $("explorer").addEventListener("keydown", (event) => {
    const tag = event.target.tagName;
    if (tag === "SELECT" || tag === "INPUT" || event.altKey || event.ctrlKey || event.metaKey) return;
    const act = { ArrowRight: () => go(state.t + 1), ArrowLeft: () => go(state.t - 1), Home: () => go(0), End: () => go(steps() - 1), ArrowDown: () => choose(state.user + 1), ArrowUp: () => choose(state.user - 1), "+": () => zoom(1.6), "-": () => zoom(1 / 1.6), 0: home }[event.key];
    if (act) { act(); event.preventDefault(); }
    else if (event.key === " " && tag !== "BUTTON") { play(); event.preventDefault(); }
  });
  // -- one finger swipes a step, two zoom; a mouse moves the map
  const held = new Map();
  let from = null;
  const scale = () => { const [, , w, h] = zoomed(box()), size = svg.getBoundingClientRect(); return Math.max(w / (size.width || 600), h / (size.height || 500)); };
  stage.addEventListener("pointerdown", (event) => { held.set(event.pointerId, [event.clientX, event.clientY]); from = held.size === 1 ? [event.clientX, event.clientY] : null; });
  stage.addEventListener("pointermove", (event) => {
    const before = held.get(event.pointerId), now = [event.clientX, event.clientY];
    if (!before) return;
    const other = [...held].find(([id]) => id !== event.pointerId), far = (p) => Math.hypot(p[0] - other[1][0], p[1] - other[1][1]) || 1;
    held.set(event.pointerId, now);
    if (other) zoom(far(now) / far(before));
    else if (event.pointerType === "mouse") { const km = scale(); state.dx -= (now[0] - before[0]) * km; state.dy -= (now[1] - before[1]) * km; draw(); }
  });
  const lift = (event) => { held.delete(event.pointerId); };
  stage.addEventListener("pointerup", (event) => {
    lift(event);
    if (!from || event.pointerType === "mouse") return;
    const dx = event.clientX - from[0], dy = event.clientY - from[1];
    from = null;
    if (Math.abs(dx) > 30 && Math.abs(dx) > 1.5 * Math.abs(dy)) go(state.t + (dx < 0 ? 1 : -1));
  });
  stage.addEventListener("pointercancel", (event) => { lift(event); from = null; });
  stage.addEventListener("pointerleave", lift);
  stage.addEventListener("dblclick", () => zoom(2));
  stage.addEventListener("wheel", (event) => { if (event.ctrlKey) { event.preventDefault(); zoom(2 ** (-event.deltaY / 200)); } }, { passive: false });
  new ResizeObserver(() => draw()).observe(stage);
  if (window.matchMedia) window.matchMedia("print").addEventListener("change", () => draw());
  const first = own().released.findIndex((z) => z >= 0);
  go(Math.max(0, first));
})();
