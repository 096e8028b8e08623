"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const el = (id) => document.getElementById(id);
  const NS = "http://www.w3.org/2000/svg";
  const NOT_COMPARED = 127, PAGE = 60;
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const names = data.systems;
  const measures = Object.keys(data.measures);
  const state = { measure: data.judge, sort: "rank", down: false, cell: [0, 1], all: false, instance: null };

  function make(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) if (value !== null && value !== undefined) node.setAttribute(key, value);
    node.append(...children.map((child) => child ?? ""));
    return node;
  }
  function draw(tag, attributes, text) {
    const node = document.createElementNS(NS, tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    return node;
  }
  const signed = (x, digits = 3) => x === null || x === undefined ? "–" : (x > 0 ? "+" : x < 0 ? "−" : "") + Math.abs(x).toFixed(digits);
  const percent = (x) => x === null ? "–" : (100 * x).toFixed(1) + " %";
  const amount = (x) => x === null ? "–" : x >= 100 || x === Math.round(x) ? Math.round(x).toLocaleString("en") : Number(x.toPrecision(3)).toString();
  const say = (text) => { el("status").textContent = text; };

  // ------------------------------------------------------------------ leaderboard
  // Digits follow the intervals: a width of 0.4 justifies two decimals, 0.04 three.
  function scoreDigits(rows) {
    const widths = rows.filter((r) => r.low !== null && r.high !== null).map((r) => r.high - r.low).sort((a, b) => a - b);
    if (!widths.length) return 3;
    return Math.min(4, Math.max(1, 1 - Math.floor(Math.log10(widths[widths.length >> 1] || 1))));
  }
  function columns() {
    const m = data.measures[state.measure], d = scoreDigits(m.rows);
    const list = [
      { key: "rank", head: "rank", value: (r) => r.rank, text: (r) => r.rank === null ? "–" : r.ranks && r.ranks[0] !== r.ranks[1] ? `${r.rank} (${r.ranks[0]}–${r.ranks[1]})` : `${r.rank}` },
      { key: "system", head: "system", name: true, value: (r) => names[r.system], text: (r) => names[r.system] },
      { key: "score", head: "score", value: (r) => r.score, text: (r) => signed(r.score, d) },
    ];
    if (m.rows.some((r) => r.low !== null)) {
      list.push({ key: "low", head: "95 % interval", value: (r) => r.low, text: (r) => r.low === null ? "–" : `${signed(r.low, d)} to ${signed(r.high, d)}` });
      list.push({ key: "forest", head: "", picture: true, value: (r) => r.score, text: () => "" });
    }
    if (m.groups.length) list.push({ key: "group", head: "alike", value: (r) => letters(m, r.system), text: (r) => letters(m, r.system) });
    list.push({ key: "mean", head: "mean pref.", value: (r) => r.mean, text: (r) => signed(r.mean) });
    list.push({ key: "success", head: "success rate", value: (r) => r.success, text: (r) => percent(r.success) });
    if (m.split) for (const [key, head] of [["solved_more", "solved more"], ["sooner", "sooner"], ["further", "further"]]) list.push({ key, head, value: (r) => r[key], text: (r) => signed(r[key]) });
    list.push({ key: "partial", head: "partial return", value: (r) => r.partial, text: (r) => r.partial === null ? "–" : r.partial.toFixed(3) });
    if (data.clock) list.push({ key: "median", head: `median ${data.clock}`, value: (r) => r.median, text: (r) => amount(r.median) });
    list.push({ key: "instances", head: "instances", value: (r) => r.instances, text: (r) => `${r.instances}` });
    return list;
  }
  function letters(m, system) {
    return m.groups.map((g, k) => g.includes(system) ? (k < 26 ? String.fromCharCode(97 + k) : `${k + 1}`) : "").filter(Boolean).join(m.groups.length > 26 ? " " : "");
  }
  function visibleRows() {
    const m = data.measures[state.measure], column = columns().find((c) => c.key === state.sort) || columns()[0];
    const wanted = el("filter").value.trim().toLowerCase();
    const rows = m.rows.filter((r) => names[r.system].toLowerCase().includes(wanted));
    const order = (a, b) => {
      const x = column.value(a), y = column.value(b);
      if (x === null || x === undefined) return y === null || y === undefined ? 0 : 1;
      if (y === null || y === undefined) return -1;
      return (x < y ? -1 : x > y ? 1 : 0) * (state.down ? -1 : 1);
    };
    return rows.map((r, k) => [r, k]).sort((a, b) => order(a[0], b[0]) || a[1] - b[1]).map(([r]) => r);
  }
  function forest(r, span) {
    const svg = draw("svg", { class: "forest", viewBox: "0 0 200 18", preserveAspectRatio: "none", "aria-hidden": "true" });
    const x = (v) => 4 + 192 * (v - span[0]) / (span[1] - span[0] || 1);
    svg.append(draw("line", { x1: x(0), x2: x(0), y1: 0, y2: 18, stroke: css("--line") }));
    if (r.low !== null) svg.append(draw("line", { x1: x(r.low), x2: x(r.high), y1: 9, y2: 9, stroke: css("--first"), "stroke-width": 2 }));
    if (r.score !== null) svg.append(draw("rect", { x: x(r.score) - 3, y: 5, width: 6, height: 8, fill: css("--first") }));
    return svg;
  }
  function board() {
    const m = data.measures[state.measure], table = el("leaderboard"), list = columns();
    const limits = m.rows.flatMap((r) => [r.low, r.high, r.score]).filter((v) => v !== null), span = [Math.min(0, ...limits), Math.max(0, ...limits)];
    const head = make("tr");
    for (const c of list) {
      const sorted = state.sort === c.key ? (state.down ? "descending" : "ascending") : null;
      if (c.picture) { head.append(make("th", { scope: "col" }, make("span", { class: "unseen" }, "interval as a picture"))); continue; }
      const button = make("button", { type: "button", "data-sort": c.key }, c.head);
      button.addEventListener("click", () => {
        state.down = state.sort === c.key ? !state.down : !["rank", "system", "median", "group"].includes(c.key);
        state.sort = c.key; board();
        el("leaderboard").querySelector(`[data-sort="${c.key}"]`).focus();
        say(`Sorted by ${c.head}, ${state.down ? "highest" : "lowest"} first.`);
      });
      head.append(make("th", { scope: "col", class: c.name ? "name" : "number", "aria-sort": sorted }, button));
    }
    const body = make("tbody");
    for (const r of visibleRows()) {
      const row = make("tr");
      for (const c of list) row.append(c.picture ? make("td", {}, forest(r, span)) : make(c.name ? "th" : "td", { scope: c.name ? "row" : null, class: c.name ? "name" : "number" }, c.text(r)));
      body.append(row);
    }
    table.replaceChildren(make("caption", { class: "unseen" }, `${m.title}, ${body.children.length} systems`), make("thead", {}, head), body);
    el("about").textContent = `${state.measure.toUpperCase()}, ${m.title}${state.measure === data.judge && measures.length > 1 ? " (the measure that judges, the others describe)" : ""}: ${m.description}` + (m.status === "ok" ? "" : ` Status of the fit: ${m.status}.`);
  }
  function tabs() {
    measures.forEach((name) => {
      const tab = make("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": "leaderboard", title: data.measures[name].title }, name.toUpperCase());
      tab.addEventListener("click", () => select(name));
      tab.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        event.preventDefault();
        const next = measures[(measures.indexOf(name) + step + measures.length) % measures.length];
        select(next); el(`tab-${next}`).focus();
      });
      el("measures").append(tab);
    });
  }
  function select(name) {
    state.measure = name; state.all = false;
    if (!columns().some((c) => c.key === state.sort)) { state.sort = "rank"; state.down = false; }
    for (const m of measures) { el(`tab-${m}`).setAttribute("aria-selected", m === name); el(`tab-${m}`).tabIndex = m === name ? 0 : -1; }
    board(); matrix(); pair();
  }

  // ------------------------------------------------------------------ copying
  const escapes = { "\\": "\\textbackslash{}", "{": "\\{", "}": "\\}", "%": "\\%", "&": "\\&", "#": "\\#", "$": "\\$", "_": "\\_", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}" };
  const writers = {
    csv: (rows) => rows.map((row) => row.map((cell) => /[",\n\r]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell).join(",")).join("\n"),
    markdown: (rows) => { const line = (row) => `| ${row.map((cell) => cell.replace(/[\\`*_{}[\]<>#|~]/g, "\\$&")).join(" | ")} |`; return [line(rows[0]), `|${rows[0].map((_, k) => k === 1 ? " --- " : " ---: ").join("|")}|`, ...rows.slice(1).map(line)].join("\n"); },
    latex: (rows) => { const line = (row) => row.map((cell) => cell.replace(/[\\{}%&#$_~^]/g, (c) => escapes[c])).join(" & ") + " \\\\"; return [`\\begin{tabular}{${rows[0].map((_, k) => k === 1 ? "l" : "r").join("")}}`, "\\toprule", line(rows[0]), "\\midrule", ...rows.slice(1).map(line), "\\bottomrule", "\\end{tabular}"].join("\n"); },
  };
  async function copy(kind) {
    const list = columns().filter((c) => !c.picture);
    const cell = (c, r) => kind === "csv" ? (c.key === "low" && r.low !== null ? `${r.low} to ${r.high}` : String(c.value(r) ?? "")) : c.text(r);
    const text = writers[kind]([list.map((c) => c.head), ...visibleRows().map((r) => list.map((c) => cell(c, r)))]) + "\n";
    try { await navigator.clipboard.writeText(text); } catch {
      const area = make("textarea", { "aria-hidden": "true" }); area.value = text; document.body.append(area); area.select();
      document.execCommand("copy"); area.remove();
    }
    document.documentElement.dataset.copied = text;
    say(`Copied ${visibleRows().length} rows as ${kind}.`);
  }

  // ------------------------------------------------------------------ heat map
  const order = () => data.measures[state.measure].rows.map((r) => r.system);
  function colour(v) {
    const end = v > 0 ? [0, 85, 140] : [179, 71, 0], t = Math.min(1, Math.abs(v)) ** 0.8;
    return `rgb(${end.map((c) => Math.round(247 + (c - 247) * t)).join(",")})`;
  }
  const shape = { side: 0, left: 0, top: 0 };
  function matrix() {
    const canvas = el("matrix"), list = order(), n = list.length, mean = data.measures[state.measure].mean;
    const wide = Math.max(240, Math.min(document.body.clientWidth - 40, 1100));
    const named = n <= 60;
    shape.left = named ? Math.min(190, wide * 0.3) : 4; shape.top = named ? shape.left : 4;
    shape.side = Math.max(3, Math.min(44, Math.floor((wide - shape.left) / n)));
    const width = shape.left + shape.side * n + 2, height = shape.top + shape.side * n + 2, ratio = window.devicePixelRatio || 1;
    canvas.width = width * ratio; canvas.height = height * ratio; canvas.style.width = `${width}px`; canvas.style.height = `${height}px`;
    const g = canvas.getContext("2d"); g.scale(ratio, ratio); g.clearRect(0, 0, width, height);
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) {
      const v = mean[list[i]][list[j]];
      g.fillStyle = i === j || v === null ? css("--line") : colour(v);
      g.fillRect(shape.left + j * shape.side, shape.top + i * shape.side, shape.side - (shape.side > 8 ? 1 : 0), shape.side - (shape.side > 8 ? 1 : 0));
    }
    if (named) {
      g.fillStyle = css("--ink"); g.font = `${Math.max(7, Math.min(12, shape.side - 1))}px system-ui, sans-serif`; g.textBaseline = "middle";
      for (let i = 0; i < n; i++) {
        const label = fit(g, names[list[i]], shape.left - 8), middle = shape.top + (i + 0.5) * shape.side;
        g.textAlign = "right"; g.fillText(label, shape.left - 5, middle);
        g.save(); g.translate(shape.left + (i + 0.5) * shape.side, shape.top - 5); g.rotate(-Math.PI / 2); g.textAlign = "left"; g.fillText(label, 0, 0); g.restore();
      }
    }
    const [a, b] = state.cell;
    if (a < n && b < n) { g.strokeStyle = css("--ink"); g.lineWidth = 2; g.strokeRect(shape.left + b * shape.side, shape.top + a * shape.side, shape.side, shape.side); }
  }
  function fit(g, text, room) {
    if (g.measureText(text).width <= room) return text;
    for (let keep = text.length - 1; keep > 4; keep--) {
      const head = Math.ceil(keep / 2), short = `${text.slice(0, head)}…${text.slice(text.length - (keep - head))}`;
      if (g.measureText(short).width <= room) return short;
    }
    return text.slice(0, 4);
  }
  function tell() {
    const list = order(), [a, b] = state.cell;
    if (!(a in list) || !(b in list)) return;
    const v = data.measures[state.measure].mean[list[a]][list[b]];
    const what = a === b ? "the same system" : v === null ? "no shared instance" : `mean preference ${signed(v)} (preferred with weight ${((v + 1) / 2).toFixed(2)})`;
    el("cell").textContent = `${names[list[a]]} over ${names[list[b]]}: ${what}`;
  }
  function choose(a, b) {
    const n = order().length;
    state.cell = [Math.max(0, Math.min(n - 1, a)), Math.max(0, Math.min(n - 1, b))]; matrix(); tell();
  }
  function openPair() {
    const list = order(), [a, b] = state.cell.map((k) => list[k]);
    if (a === b || !within(a) || !within(b)) return;
    el("first").value = a; el("second").value = b; state.instance = null; pair(); el("pair").scrollIntoView({ behavior: "smooth" });
  }
  function matrixEvents() {
    const canvas = el("matrix");
    const at = (event) => { const box = canvas.getBoundingClientRect(); return [Math.floor((event.clientY - box.top - shape.top) / shape.side), Math.floor((event.clientX - box.left - shape.left) / shape.side)]; };
    canvas.addEventListener("pointermove", (event) => { const [a, b] = at(event), n = order().length; if (a >= 0 && b >= 0 && a < n && b < n && (a !== state.cell[0] || b !== state.cell[1])) choose(a, b); });
    canvas.addEventListener("click", (event) => { const [a, b] = at(event); if (a >= 0 && b >= 0) { choose(a, b); openPair(); } });
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (step) { event.preventDefault(); choose(state.cell[0] + step[0], state.cell[1] + step[1]); }
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); openPair(); }
    });
  }

  // ------------------------------------------------------------------ two systems
  const chosen = data.delta_systems || [], within = (system) => chosen.includes(system);
  const packed = {};
  function deltas(measure) {
    if (!(measure in (data.deltas || {}))) return null;
    if (!(measure in packed)) { const text = atob(data.deltas[measure]); const bytes = new Int8Array(text.length); for (let k = 0; k < text.length; k++) bytes[k] = text.charCodeAt(k) << 24 >> 24; packed[measure] = bytes; }
    return packed[measure];
  }
  function pairDeltas(measure, a, b) {
    const all = deltas(measure); if (!all) return null;
    let i = chosen.indexOf(a), j = chosen.indexOf(b), sign = 1;
    if (i > j) { [i, j] = [j, i]; sign = -1; }
    const n = chosen.length, index = i * n - i * (i + 1) / 2 + (j - i - 1), count = data.instances.length;
    return Array.from(all.subarray(index * count, (index + 1) * count), (v) => v === NOT_COMPARED ? null : sign * v / 100);
  }
  function pair() {
    const a = Number(el("first").value), b = Number(el("second").value), table = el("instances");
    const values = a === b || !chosen.length ? null : pairDeltas(state.measure, a, b);
    if (!values) {
      el("pair-summary").textContent = !chosen.length ? "There are no two systems to compare." : a === b ? "Choose two different systems." : `Instances are not in this page for ${state.measure.toUpperCase()}; choose another measure above.`;
      table.replaceChildren(); el("more").hidden = true; return;
    }
    const shared = values.map((v, k) => [v, k]).filter(([v]) => v !== null);
    const won = shared.filter(([v]) => v > 0).length, lost = shared.filter(([v]) => v < 0).length;
    const mean = data.measures[state.measure].mean[a][b];
    el("pair-summary").textContent = `${state.measure.toUpperCase()}: ${names[a]} is preferred on ${won}, ${names[b]} on ${lost}, ${shared.length - won - lost} tied of ${shared.length} shared instances; mean preference ${signed(mean)}.`;
    const wanted = el("instance-filter").value.trim().toLowerCase();
    const label = (k) => (data.benchmarks[k] ? `${data.benchmarks[k]} / ` : "") + data.instances[k];
    const list = shared.filter(([, k]) => label(k).toLowerCase().includes(wanted)).sort((x, y) => Math.abs(y[0]) - Math.abs(x[0]) || x[1] - y[1]);
    const body = make("tbody");
    for (const [v, k] of state.all ? list : list.slice(0, PAGE)) {
      const button = make("button", { type: "button" }, label(k));
      const row = make("tr", { "aria-selected": state.instance === k }, make("th", { scope: "row", class: "name" }, button), make("td", { class: `number ${v > 0 ? "more" : v < 0 ? "less" : ""}` }, signed(v, 2)), make("td", {}, v > 0 ? names[a] : v < 0 ? names[b] : "tied"));
      button.addEventListener("click", () => { state.instance = k; for (const other of body.children) other.setAttribute("aria-selected", other === row); plot(a, b, k); });
      body.append(row);
    }
    table.replaceChildren(make("caption", { class: "unseen" }, "Instances, the most decisive first"), make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "instance"), make("th", { scope: "col", class: "number" }, "Δ"), make("th", { scope: "col" }, "preferred"))), body);
    el("more").hidden = state.all || list.length <= PAGE; el("more").textContent = `Show all ${list.length}`;
    const shown = state.instance !== null ? state.instance : list.length ? list[0][1] : null;
    if (shown !== null) plot(a, b, shown);
  }
  function plot(a, b, k) {
    const svg = el("curves"), caption = el("curves-caption"), label = (data.benchmarks[k] ? `${data.benchmarks[k]} / ` : "") + data.instances[k];
    svg.replaceChildren();
    if (!data.curves) { caption.textContent = data.clock ? `Curves are not in this page (${label}).` : `Without a clock there are no curves (${label}).`; return; }
    const runs = [a, b].map((s) => data.curves[k][chosen.indexOf(s)]);
    const times = runs.flat().flatMap((run) => run.filter((_, i) => i % 2 === 0));
    const end = Math.max(1e-12, ...times.filter((t) => t >= 0)) * 1.1, X = (t) => 44 + 456 * t / end, Y = (r) => 262 - 236 * r;
    const ink = css("--quiet"), line = css("--line"), colours = [css("--first"), css("--second")];
    for (const r of [0, 0.25, 0.5, 0.75, 1]) { svg.append(draw("line", { x1: 44, x2: 500, y1: Y(r), y2: Y(r), stroke: line })); svg.append(draw("text", { x: 38, y: Y(r) + 4, "text-anchor": "end" }, String(r))); }
    for (const t of [0, end / 2.2, end / 1.1]) svg.append(draw("text", { x: X(t), y: 279, "text-anchor": "middle" }, amount(Number(t.toPrecision(3)))));
    svg.append(draw("text", { x: 272, y: 296, "text-anchor": "middle", style: `fill:${ink}` }, data.clock));
    const unknown = [];
    runs.forEach((trials, side) => trials.forEach((run) => {
      let d = `M${X(0)} ${Y(0)}`, level = 0;
      for (let i = 0; i < run.length; i += 2) {
        if (run[i] < 0) { unknown.push(`${names[side ? b : a]} reached ${run[i + 1]} at an unknown time`); continue; }
        d += `H${X(run[i]).toFixed(2)}V${Y(run[i + 1]).toFixed(2)}`; level = run[i + 1];
        svg.append(draw(side ? "rect" : "circle", side ? { x: X(run[i]) - 3.5, y: Y(level) - 3.5, width: 7, height: 7, fill: colours[side] } : { cx: X(run[i]), cy: Y(level), r: 4, fill: colours[side] }));
      }
      svg.append(draw("path", { d: d + `H${X(end)}`, fill: "none", stroke: colours[side], "stroke-width": 2, "stroke-dasharray": side ? "6 3" : "none", opacity: trials.length > 1 ? 0.7 : 1 }));
    }));
    [a, b].forEach((s, side) => svg.append(draw("text", { x: 50 + side * 230, y: 14, style: `fill:${colours[side]};font-weight:600` }, `${side ? "- -" : "—"} ${names[s].length > 26 ? names[s].slice(0, 25) + "…" : names[s]}`)));
    const best = (trials) => trials.map((run) => run.length ? run[run.length - 1] : 0).join(", ") || "no run";
    caption.textContent = `${label}: return over ${data.clock}. ${names[a]} reaches ${best(runs[0])}, ${names[b]} ${best(runs[1])}.` + (unknown.length ? ` ${[...new Set(unknown)].join("; ")}.` : "");
  }
  function fillSelects() {
    for (const id of ["first", "second"]) {
      for (const s of chosen) el(id).append(make("option", { value: s }, names[s]));
      el(id).addEventListener("change", () => { state.instance = null; state.all = false; pair(); });
    }
    const first = order().filter(within);
    if (first.length > 1) { el("first").value = first[0]; el("second").value = first[1]; }
    el("swap").addEventListener("click", () => { const a = el("first").value; el("first").value = el("second").value; el("second").value = a; pair(); });
    el("more").addEventListener("click", () => { state.all = true; pair(); });
    el("instance-filter").addEventListener("input", pair);
  }

  tabs(); fillSelects(); matrixEvents();
  el("filter").addEventListener("input", () => { board(); say(`${visibleRows().length} systems.`); });
  for (const button of document.querySelectorAll("[data-copy]")) button.addEventListener("click", () => copy(button.dataset.copy));
  select(state.measure);
  let waiting; window.addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(matrix, 100); });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => select(state.measure));
  document.documentElement.dataset.ready = "yes";
})();
