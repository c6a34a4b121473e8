"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const canvas = $("map"), ctx = canvas.getContext("2d"), dark = matchMedia("(prefers-color-scheme: dark)");
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
  const floats = (text) => new Float32Array(bytes(text)), ints = (text) => new Int32Array(bytes(text));
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // -- the plane: Web Mercator (0..1) where the map has degrees, else km with north up
  const degrees = data.frame === "degrees", EARTH = 40075.016686;
  const lonX = (lon) => degrees ? (lon + 180) / 360 : lon;
  const latY = (lat) => degrees ? (1 - Math.asinh(Math.tan(lat * Math.PI / 180)) / Math.PI) / 2 : -lat;
  const xLon = (x) => degrees ? x * 360 - 180 : x;
  const yLat = (y) => degrees ? Math.atan(Math.sinh(Math.PI * (1 - 2 * y))) * 180 / Math.PI : -y;
  const kmPer = () => degrees ? EARTH * Math.cos(yLat(view.y) * Math.PI / 180) : 1; // km of one unit, where one looks

  // -- locations: edges of rows and columns of a grid, or places
  const grid = data.grid;
  const edges = (n, at, step, to) => Float64Array.from({ length: n + 1 }, (_, k) => to(at + k * step));
  const xs = grid ? edges(grid.cols, grid.lon0, grid.dlon, lonX) : Float64Array.from(floats(data.x), (v) => lonX(v + data.x0));
  const ys = grid ? edges(grid.rows, grid.lat0, grid.dlat, latY) : Float64Array.from(floats(data.y), (v) => latY(v + data.y0));
  const size = grid ? grid.rows * grid.cols : xs.length;
  const middle = (cell) => {
    if (!grid) return [xs[cell], ys[cell]];
    const c = cell % grid.cols, r = Math.floor(cell / grid.cols);
    return [(xs[c] + xs[c + 1]) / 2, (ys[r] + ys[r + 1]) / 2];
  };
  let bounds = [Infinity, -Infinity, Infinity, -Infinity];
  for (const x of xs) bounds = [Math.min(bounds[0], x), Math.max(bounds[1], x), bounds[2], bounds[3]];
  for (const y of ys) bounds = [bounds[0], bounds[1], Math.min(bounds[2], y), Math.max(bounds[3], y)];

  // -- layers
  const layers = data.layers.map((layer) => ({ ...layer, on: layer.on !== false,
    ...(layer.values ? { array: floats(layer.values) } : {}), ...(layer.labels ? { label: ints(layer.labels) } : {}),
    ...(layer.edges ? { pairs: ints(layer.edges) } : {}), ...(layer.cells ? { at: ints(layer.cells) } : {}) }));
  for (const layer of layers) if (layer.kind === "points") {
    layer.count = new Map();
    for (const cell of layer.at) if (cell >= 0) layer.count.set(cell, (layer.count.get(cell) || 0) + 1);
    layer.most = Math.max(1, ...layer.count.values());
  }
  const RAMPS = { light: ["#f3efd0", "#8fcdb5", "#2f93b0", "#24508f", "#1b1f5e"], dark: ["#20315f", "#2f7fb0", "#56bfa6", "#c9e08a", "#fff3c0"] };
  const part = (hex, k) => parseInt(hex.slice(1 + 2 * k, 3 + 2 * k), 16);
  function ramp(share) {
    const stops = dark.matches ? RAMPS.dark : RAMPS.light, at = Math.min(Math.max(share, 0), 1) * (stops.length - 1), k = Math.min(Math.floor(at), stops.length - 2);
    return [0, 1, 2].map((j) => Math.round(part(stops[k], j) + (at - k) * (part(stops[k + 1], j) - part(stops[k], j))));
  }
  const shareOf = (layer, v) => layer.high === layer.low ? 1 : layer.log ? Math.log(v / layer.low) / Math.log(layer.high / layer.low) : (v - layer.low) / (layer.high - layer.low);
  const blank = (layer, v) => Number.isNaN(v) || (layer.log || layer.zero === "blank") && v === 0;
  function picture(layer) { // a pixel a cell, row 0 at the top of the image
    const image = document.createElement("canvas");
    image.width = grid.cols; image.height = grid.rows;
    const pen = image.getContext("2d"), pixels = pen.createImageData(grid.cols, grid.rows);
    for (let cell = 0; cell < size; cell++) if (!blank(layer, layer.array[cell])) pixels.data.set([...ramp(shareOf(layer, layer.array[cell])), 225], 4 * cell);
    pen.putImageData(pixels, 0, 0);
    return image;
  }

  // -- what is seen
  const view = { x: 0, y: 0, scale: 1 };
  let wide = 1, high = 1, ratio = 1;
  const sx = (x) => (x - view.x) * view.scale + wide / 2, sy = (y) => (y - view.y) * view.scale + high / 2;
  function focus() { // the whole map; without values and policy, what is drawn on it
    const all = layers.flatMap((l) => l.at ? [...new Set(l.at)].filter((cell) => cell >= 0).map(middle) : []);
    if (!all.length || layers.some((l) => l.kind === "values" || l.kind === "policy")) return bounds;
    const [a, b] = [0, 1].map((k) => all.map((p) => p[k])), ends = (v) => [v.reduce((x, y) => Math.min(x, y)), v.reduce((x, y) => Math.max(x, y))];
    const margin = grid ? 2 * (xs[1] - xs[0]) : 0, [west, east] = ends(a), [north, south] = ends(b);
    return [west - margin, east + margin, north - margin, south + margin];
  }
  function home() {
    const [west, east, north, south] = focus();
    view.x = (west + east) / 2; view.y = (north + south) / 2;
    view.scale = 0.86 * Math.min(wide / (east - west || 1e-9), high / (south - north || 1e-9));
  }
  function resize() {
    ratio = devicePixelRatio || 1; wide = innerWidth; high = innerHeight;
    canvas.width = Math.round(wide * ratio); canvas.height = Math.round(high * ratio);
  }
  let asked = 0;
  const draw = () => { if (!asked) asked = requestAnimationFrame(() => { asked = 0; paint(); }); };
  function zoom(by, px = wide / 2, py = high / 2) {
    const x = view.x + (px - wide / 2) / view.scale, y = view.y + (py - high / 2) / view.scale;
    const span = Math.max(bounds[1] - bounds[0], bounds[3] - bounds[2], 1e-12);
    view.scale = Math.min(Math.max(view.scale * by, 0.1 * Math.min(wide, high) / span), 1e5 * wide / span);
    view.x = x - (px - wide / 2) / view.scale; view.y = y - (py - high / 2) / view.scale;
    draw();
  }

  // -- tiles: only where they were asked for, and only what comes
  const cache = new Map();
  let offline = false;
  function drawTiles() {
    if (!data.tiles || !degrees) return;
    const z = Math.max(0, Math.min(data.tiles.most, Math.round(Math.log2(view.scale * ratio / 256)))), n = 2 ** z;
    const from = [view.x - wide / 2 / view.scale, view.y - high / 2 / view.scale].map((v) => Math.floor(v * n));
    const to = [view.x + wide / 2 / view.scale, view.y + high / 2 / view.scale].map((v) => Math.floor(v * n));
    for (let i = from[0]; i <= to[0]; i++) for (let j = Math.max(0, from[1]); j <= Math.min(n - 1, to[1]); j++) {
      const url = data.tiles.url.replace("{z}", z).replace("{x}", ((i % n) + n) % n).replace("{y}", j);
      if (!cache.has(url)) {
        const image = new Image();
        cache.set(url, image);
        image.onload = () => { offline = false; draw(); };
        image.onerror = () => { image.failed = true; offline = true; credit(); };
        image.src = url;
      }
      const image = cache.get(url);
      if (!image.complete || image.failed || !image.naturalWidth) continue;
      const x = Math.floor(sx(i / n)), y = Math.floor(sy(j / n));
      ctx.globalAlpha = dark.matches ? 0.55 : 0.8;
      ctx.drawImage(image, x, y, Math.ceil(sx((i + 1) / n)) - x, Math.ceil(sy((j + 1) / n)) - y);
      ctx.globalAlpha = 1;
    }
    credit();
  }
  const credit = () => { $("credit").textContent = !data.tiles ? "" : offline ? "Background: not reached (offline?)" : data.tiles.credit; };

  // -- each kind of layer
  const clip = (array, low, high, n) => { // first and last band between two edges, edges ascending or descending
    let a = 0, b = n;
    const up = array[n] > array[0];
    while (a < n - 1 && (up ? array[a + 1] < low : array[a + 1] > high)) a++;
    while (b > a + 1 && (up ? array[b - 1] > high : array[b - 1] < low)) b--;
    return [a, b];
  };
  const seen = () => {
    const dx = wide / 2 / view.scale, dy = high / 2 / view.scale;
    return [...clip(xs, view.x - dx, view.x + dx, grid.cols), ...clip(ys, view.y - dy, view.y + dy, grid.rows)];
  };
  function drawValues(layer) {
    if (!grid) {
      const r = Math.max(3, Math.min(9, 240 / Math.sqrt(size)));
      for (let cell = 0; cell < size; cell++) if (!blank(layer, layer.array[cell])) disc(cell, r, `rgb(${ramp(shareOf(layer, layer.array[cell]))})`, 1);
      return;
    }
    if (layer.theme !== dark.matches) { layer.image = picture(layer); layer.theme = dark.matches; }
    const [c0, c1, r0, r1] = seen();
    ctx.imageSmoothingEnabled = false;
    const left = Math.round(sx(xs[c0])), right = Math.round(sx(xs[c1]));
    for (let r = r0; r < r1; r++) { // row by row: rows of Mercator are not equally high
      const top = Math.round(sy(ys[r + 1])), bottom = Math.round(sy(ys[r]));
      if (bottom > top) ctx.drawImage(layer.image, c0, r, c1 - c0, 1, left, top, right - left, bottom - top);
    }
  }
  function drawPolicy(layer) {
    ctx.strokeStyle = colour("--border"); ctx.lineWidth = 1.1;
    ctx.beginPath();
    if (grid && layer.label) {
      const [c0, c1, r0, r1] = seen(), at = (r, c) => layer.label[r * grid.cols + c];
      if ((sx(xs[1]) - sx(xs[0])) >= 1.5) {
        for (let r = r0; r < r1; r++) for (let c = c0; c < c1; c++) {
          if (c + 1 < grid.cols && at(r, c) !== at(r, c + 1)) { ctx.moveTo(sx(xs[c + 1]), sy(ys[r])); ctx.lineTo(sx(xs[c + 1]), sy(ys[r + 1])); }
          if (r + 1 < grid.rows && at(r, c) !== at(r + 1, c)) { ctx.moveTo(sx(xs[c]), sy(ys[r + 1])); ctx.lineTo(sx(xs[c + 1]), sy(ys[r + 1])); }
        }
      }
    }
    // a hundred thousand lines closer than this are a blot
    if (layer.pairs && (!grid || sx(xs[1]) - sx(xs[0]) >= 7 || layer.pairs.length < 4000)) for (let k = 0; k < layer.pairs.length; k += 2) {
      const [a, b] = middle(layer.pairs[k]), [c, d] = middle(layer.pairs[k + 1]);
      ctx.moveTo(sx(a), sy(b)); ctx.lineTo(sx(c), sy(d));
    }
    ctx.stroke();
  }
  function disc(cell, r, fill, alpha = 0.75) {
    const [x, y] = middle(cell);
    ctx.globalAlpha = alpha; ctx.fillStyle = fill; ctx.strokeStyle = colour("--map"); ctx.lineWidth = 1;
    ctx.beginPath(); ctx.arc(sx(x), sy(y), r, 0, 7); ctx.fill(); ctx.stroke();
    ctx.globalAlpha = 1;
  }
  function drawPoints(layer) { // larger for more, but no larger than a cell where there are cells
    const most = grid ? Math.max(2.5, Math.min(10, 0.5 * (sx(xs[1]) - sx(xs[0])))) : 9, ink = colour(`--dots${layer.ink}`);
    for (const [cell, n] of layer.count) disc(cell, Math.max(2, most * Math.sqrt(layer.most > 1 ? n / layer.most : 0.5)), ink);
  }
  function drawTrace(layer) {
    const ink = colour(`--dots${layer.ink}`);
    ctx.strokeStyle = ink; ctx.lineWidth = 2; ctx.setLineDash(layer.ink % 2 ? [] : [6, 4]);
    ctx.beginPath();
    let on = false;
    for (const cell of layer.at) { if (cell < 0) { on = false; continue; } const [x, y] = middle(cell); if (on) ctx.lineTo(sx(x), sy(y)); else ctx.moveTo(sx(x), sy(y)); on = true; }
    ctx.stroke(); ctx.setLineDash([]);
    for (const cell of new Set(layer.at)) if (cell >= 0) disc(cell, layer.radius, ink, 1);
  }
  const DRAW = { values: drawValues, policy: drawPolicy, points: drawPoints, trace: drawTrace };

  // -- degrees along the sides, and a scale bar
  const round = (longest) => { const power = 10 ** Math.floor(Math.log10(longest)); return power * [5, 2, 1].find((k) => power * k <= longest); };
  function label(text, x, y, align) {
    ctx.font = "12px system-ui, sans-serif"; ctx.textAlign = align; ctx.lineWidth = 3; ctx.lineJoin = "round";
    ctx.strokeStyle = colour("--ground"); ctx.strokeText(text, x, y); ctx.fillStyle = colour("--soft"); ctx.fillText(text, x, y);
  }
  function spelt(value, step, marks) {
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9)), text = Math.abs(value).toFixed(digits);
    return degrees ? `${text}°${+text === 0 ? "" : ` ${value > 0 ? marks[0] : marks[1]}`}` : `${value.toFixed(digits)} km`;
  }
  function drawAxes() {
    const dx = wide / 2 / view.scale, dy = high / 2 / view.scale;
    const tick = (...ends) => { ctx.strokeStyle = colour("--soft"); ctx.lineWidth = 1; ctx.beginPath(); ctx.moveTo(ends[0], ends[1]); ctx.lineTo(ends[2], ends[3]); ctx.stroke(); };
    let west = xLon(view.x - dx), east = xLon(view.x + dx), step = round((east - west) / Math.max(2, wide / 190));
    for (let k = Math.ceil(west / step); k * step < east; k++) {
      const x = sx(lonX(k * step));
      if (x < 70 || x > wide - 30) continue;
      tick(x, high, x, high - 6);
      label(spelt(k * step, step, "EW"), x, high - 10, "center");
    }
    let south = yLat(view.y + dy), north = yLat(view.y - dy);
    step = round((north - south) / Math.max(2, high / 170));
    for (let k = Math.ceil(south / step); k * step < north; k++) {
      const y = sy(latY(k * step));
      if (y < 165 || y > high - 70) continue;
      tick(0, y, 6, y);
      label(spelt(k * step, step, "NS"), 10, y + 4, "left");
    }
    const perKm = view.scale / kmPer(), bar = round(Math.min(150, wide / 3) / perKm), ink = colour("--ink");
    ctx.strokeStyle = ink; ctx.lineWidth = 3; ctx.beginPath(); ctx.moveTo(14, high - 34); ctx.lineTo(14 + bar * perKm, high - 34); ctx.stroke();
    label(bar >= 1 ? `${bar} km` : `${+(bar * 1000).toPrecision(3)} m`, 14, high - 41, "left");
  }
  function paint() {
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.fillStyle = colour("--ground"); ctx.fillRect(0, 0, wide, high);
    const box = [sx(bounds[0]), sy(bounds[2]), sx(bounds[1]) - sx(bounds[0]), sy(bounds[3]) - sy(bounds[2])];
    if (grid) { ctx.fillStyle = colour("--map"); ctx.fillRect(...box); }
    drawTiles();
    for (const layer of layers) if (layer.on) DRAW[layer.kind](layer);
    if (!grid && !layers.some((l) => l.kind === "values" && l.on)) for (let k = 0; k < size; k++) disc(k, 2, colour("--soft"));
    if (grid) { ctx.strokeStyle = colour("--soft"); ctx.lineWidth = 1; ctx.strokeRect(...box); }
    drawAxes();
    canvas.dataset.scale = view.scale; canvas.dataset.x = xLon(view.x); canvas.dataset.y = yLat(view.y);
  }

  // -- what is under the pointer
  function cellAt(px, py) {
    const x = view.x + (px - wide / 2) / view.scale, y = view.y + (py - high / 2) / view.scale;
    if (grid) {
      const c = Math.floor((xLon(x) - grid.lon0) / grid.dlon), r = Math.floor((yLat(y) - grid.lat0) / grid.dlat);
      return c >= 0 && r >= 0 && c < grid.cols && r < grid.rows ? r * grid.cols + c : -1;
    }
    let best = -1, least = 14 ** 2;
    for (let k = 0; k < size; k++) { const d = (sx(xs[k]) - px) ** 2 + (sy(ys[k]) - py) ** 2; if (d < least) { least = d; best = k; } }
    return best;
  }
  const number = (v) => Number.isNaN(v) ? "none" : (+v.toPrecision(4)).toLocaleString("en");
  function tell(px, py) {
    const cell = cellAt(px, py), tip = $("tip");
    tip.hidden = cell < 0;
    if (cell < 0) return;
    const [x, y] = middle(cell), where = degrees ? `${yLat(y).toFixed(5)}, ${xLon(x).toFixed(5)}` : `${xLon(x).toFixed(3)} km east, ${yLat(y).toFixed(3)} km north`;
    const said = [`${grid ? "cell" : "location"} ${cell}: ${where}`];
    for (const layer of layers) if (layer.on) {
      if (layer.kind === "values") said.push(`${layer.name}: ${number(layer.array[cell])}`);
      else if (layer.kind === "policy") said.push(layer.label[cell] < 0 ? "no edge: may be disclosed" : `component ${layer.label[cell]}`);
      else if (layer.kind === "points" && layer.count.has(cell)) said.push(`${layer.name}: ${layer.count.get(cell)}`);
    }
    tip.textContent = said.join("\n"); // text only: names are never markup
    tip.style.left = `${Math.min(px + 14, wide - tip.offsetWidth - 6)}px`;
    tip.style.top = `${Math.min(py + 14, high - tip.offsetHeight - 6)}px`;
  }

  // -- mouse, touch, keys
  const held = new Map();
  canvas.addEventListener("pointerdown", (e) => { canvas.setPointerCapture(e.pointerId); held.set(e.pointerId, [e.clientX, e.clientY]); if (e.pointerType !== "mouse") tell(e.clientX, e.clientY); });
  canvas.addEventListener("pointermove", (e) => {
    const before = held.get(e.pointerId);
    if (!before) { tell(e.clientX, e.clientY); return; }
    const now = [e.clientX, e.clientY], other = [...held].find(([id]) => id !== e.pointerId);
    if (other) {
      const far = (p) => Math.hypot(p[0] - other[1][0], p[1] - other[1][1]) || 1;
      zoom(far(now) / far(before), (now[0] + other[1][0]) / 2, (now[1] + other[1][1]) / 2);
    } else { view.x -= (now[0] - before[0]) / view.scale; view.y -= (now[1] - before[1]) / view.scale; draw(); }
    $("tip").hidden = true;
    held.set(e.pointerId, now);
  });
  for (const kind of ["pointerup", "pointercancel"]) canvas.addEventListener(kind, (e) => held.delete(e.pointerId));
  canvas.addEventListener("pointerleave", () => { $("tip").hidden = true; });
  canvas.addEventListener("wheel", (e) => { e.preventDefault(); zoom(2 ** (-e.deltaY / 400), e.clientX, e.clientY); }, { passive: false });
  canvas.addEventListener("dblclick", (e) => zoom(2, e.clientX, e.clientY));
  const keys = { ArrowLeft: [-60, 0], ArrowRight: [60, 0], ArrowUp: [0, -60], ArrowDown: [0, 60] };
  canvas.addEventListener("keydown", (e) => {
    if (keys[e.key]) { view.x += keys[e.key][0] / view.scale; view.y += keys[e.key][1] / view.scale; draw(); }
    else if (e.key === "+" || e.key === "=") zoom(1.5);
    else if (e.key === "-") zoom(1 / 1.5);
    else if (e.key === "0") { home(); draw(); }
    else return;
    e.preventDefault();
  });
  $("in").onclick = () => zoom(1.6);
  $("out").onclick = () => zoom(1 / 1.6);
  $("home").onclick = () => { home(); draw(); };

  // -- the panel
  function legend() {
    const shown = layers.find((l) => l.kind === "values" && l.on);
    $("ramp").hidden = !shown;
    if (!shown) return;
    const pen = $("bar").getContext("2d");
    for (let k = 0; k < 160; k++) { pen.fillStyle = `rgb(${ramp(k / 159)})`; pen.fillRect(k, 0, 1, 10); }
    $("low").textContent = number(shown.low); $("high").textContent = number(shown.high) + (shown.log ? " (log)" : "");
  }
  for (const layer of layers) {
    const row = document.createElement("label"), box = document.createElement("input"), mark = document.createElement("i");
    box.type = layer.kind === "values" && layers.filter((l) => l.kind === "values").length > 1 ? "radio" : "checkbox";
    box.name = box.type === "radio" ? "values" : layer.name;
    box.checked = layer.on;
    box.onchange = () => { for (const l of layers) if (box.type === "radio" && l.kind === "values") l.on = false; layer.on = box.checked; legend(); draw(); };
    row.append(box, document.createTextNode(layer.name));
    if (layer.ink !== undefined) { mark.className = layer.kind === "trace" ? "lines" : ""; mark.style[layer.kind === "trace" ? "color" : "background"] = `var(--dots${layer.ink})`; row.append(mark); }
    $("layers").append(row);
  }
  if (innerWidth < 600 && layers.length > 3) $("panel").open = false; // a few names fit a phone
  addEventListener("resize", () => { resize(); draw(); });
  dark.addEventListener("change", () => { legend(); draw(); });
  resize(); home(); legend(); credit(); paint();
})();
