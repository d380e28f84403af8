"use strict";
(() => {
  const root = document.documentElement;
  const query = window.matchMedia("(prefers-color-scheme: dark)");
  const themeButton = document.getElementById("theme");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : query.matches);
  let redraw = () => {};
  const label = () => { themeButton.textContent = isDark() ? "light theme" : "dark theme"; };
  themeButton.hidden = false;
  themeButton.onclick = () => { root.dataset.theme = isDark() ? "light" : "dark"; label(); redraw(); };
  query.addEventListener("change", () => { label(); redraw(); });
  label();

  const source = document.getElementById("data");
  if (!source) return;
  const data = JSON.parse(source.textContent);
  const canvas = document.getElementById("plot"), tip = document.getElementById("tip"), tools = document.getElementById("tools");
  const context = canvas.getContext("2d");
  const escape = (text) => String(text).replace(/[&<>"]/g, (c) => ({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}[c]));

  // Rows: a timeline and a rank, with its computation and the rest as lists in order of their start.
  const darker = (colour, amount) => {
    const value = parseInt(colour.slice(1), 16), part = (shift) => Math.round(((value >> shift) & 255) * (1 - amount));
    return `rgb(${part(16)},${part(8)},${part(0)})`;
  };
  const indexOf = (count) => ({n: count, start: new Float64Array(count), end: new Float64Array(count), id: new Int32Array(count), longest: 0});
  const rowsOf = (timeline, number) => {
    const e = timeline.events, idle = timeline.idle, rows = [];
    e.at = new Float64Array(e.start.length);
    idle.at = new Float64Array(idle.start.length);
    let first = 0, firstIdle = 0;
    for (let rank = 0; rank < timeline.ranks; ++rank) {
      const count = e.count[rank], own = [];
      let computing = 0, time = 0;
      for (let i = first; i < first + count; ++i) if (e.compute[i]) ++computing;
      const row = {timeline: number, rank, work: indexOf(computing), rest: indexOf(count - computing), idle: indexOf(idle.count[rank])};
      let w = 0, r = 0;
      const stages = new Set();
      for (let i = first; i < first + count; ++i) {
        time += e.start[i];
        e.at[i] = time;
        const list = e.compute[i] ? row.work : row.rest, at = e.compute[i] ? w++ : r++;
        list.start[at] = time;
        list.end[at] = time + e.length[i];
        list.id[at] = i;
        list.longest = Math.max(list.longest, e.length[i]);
        if (e.micro_batch[i] >= 0 && e.compute[i]) stages.add(e.stage[i]);
      }
      time = 0;
      for (let i = 0; i < idle.count[rank]; ++i) {
        const at = firstIdle + i;
        time += idle.start[at];
        idle.at[at] = time;
        row.idle.start[i] = time;
        row.idle.end[i] = time + idle.length[at];
        row.idle.id[i] = at;
        row.idle.longest = Math.max(row.idle.longest, idle.length[at]);
      }
      // Later stages of a rank are darker.
      const order = [...stages].sort((a, b) => a - b);
      row.shade = new Map(order.map((stage, i) => [stage, order.length > 1 ? 0.32 * i / (order.length - 1) : 0]));
      first += count;
      firstIdle += idle.count[rank];
      rows.push(row);
    }
    return rows;
  };
  const timelines = data.timelines;
  const all = timelines.map(rowsOf);
  const colours = new Map();
  const colourOf = (row, id) => {
    const e = timelines[row.timeline].events, shade = row.shade.get(e.stage[id]) || 0, key = e.class[id] + ":" + shade;
    if (!colours.has(key)) colours.set(key, darker(data.classes[e.class[id]].colour, e.micro_batch[id] >= 0 ? shade : 0));
    return colours.get(key);
  };

  // State.
  let paired = false, tinted = true, rows = [], chosen = timelines.map((t) => Math.max(0, t.steps.findIndex((s) => s.typical)));
  const stepOf = (number) => timelines[number].steps[chosen[number]] || {start: 0, end: 1, step: 0};
  const offset = (number) => stepOf(number).start;
  let low = 0, high = 1, view = {from: 0, to: 1};
  const margin = {left: 74, right: 10, top: 22, bottom: 6};
  let width = 0, height = 0, rowHeight = 24, headHeight = 20, layout = [];

  const arrange = () => {
    rows = [];
    if (paired && timelines.length > 1) {
      const most = Math.max(...all.map((list) => list.length));
      for (let rank = 0; rank < most; ++rank) all.forEach((list) => { if (list[rank]) rows.push(list[rank]); });
    } else {
      all.forEach((list) => rows.push(...list));
    }
    const heads = paired || timelines.length < 1 ? 0 : timelines.length;
    rowHeight = Math.max(8, Math.min(30, Math.floor(660 / Math.max(1, rows.length))));
    let y = margin.top;
    layout = [];
    rows.forEach((row, i) => {
      if (!paired && row.rank === 0) {
        layout.push({head: row.timeline, y});
        y += headHeight;
      } else if (paired && i > 0 && row.timeline === 0) {
        y += 5;
      }
      layout.push({row, y});
      y += rowHeight;
    });
    height = y + margin.bottom;
    low = 0;
    high = Math.max(1, ...timelines.map((t, i) => stepOf(i).end - stepOf(i).start));
  };
  const least = () => Math.min(0, ...timelines.map((t, i) => (t.steps[0] ? t.steps[0].start - offset(i) : 0)));
  const most = () => Math.max(high, ...timelines.map((t, i) => (t.steps.length ? t.steps[t.steps.length - 1].end - offset(i) : 1)));

  const setView = (from, to) => {
    const room = (most() - least()) * 1.04, span = Math.min(Math.max(to - from, 20), room);
    const middle = (from + to) / 2;
    from = Math.max(least() - room * 0.02, Math.min(middle - span / 2, most() + room * 0.02 - span));
    view = {from, to: from + span};
  };
  const showAll = () => { const room = (high - low) * 0.005; setView(low - room, high + room); };

  const time = (nano) => {
    const a = Math.abs(nano);
    const f = (v, unit) => `${v >= 100 ? v.toFixed(0) : v >= 10 ? v.toFixed(1) : v.toFixed(2)} ${unit}`;
    const sign = nano < 0 ? "−" : "";
    if (a === 0) return "0";
    if (a < 1e3) return sign + Math.round(a) + " ns";
    if (a < 1e6) return sign + f(a / 1e3, "us");
    if (a < 1e9) return sign + f(a / 1e6, "ms");
    return sign + f(a / 1e9, "s");
  };
  const bytes = (n) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let u = 0;
    while (n >= 1024 && u < 4) { n /= 1024; ++u; }
    return `${u ? n.toFixed(2) : n} ${units[u]}`;
  };
  // Ticks carry as many digits as their distance needs.
  const tickText = (value, step) => {
    if (value === 0) return "0";
    const [unit, name] = Math.max(Math.abs(view.from), Math.abs(view.to)) < 1e3 ? [1, "ns"] : step < 1e3 && Math.abs(value) < 1e6 ? [1e3, "us"]
      : Math.abs(view.to) < 1e6 ? [1e3, "us"] : Math.abs(view.to) < 1e9 ? [1e6, "ms"] : [1e9, "s"];
    return (value / unit).toFixed(Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / unit) - 1e-9)))) + " " + name;
  };

  const firstIn = (list, from) => {
    let a = 0, b = list.n;
    const limit = from - list.longest;
    while (a < b) { const m = (a + b) >> 1; if (list.start[m] < limit) a = m + 1; else b = m; }
    return a;
  };

  // Boxes narrower than a pixel are merged into columns of a pixel, in the colour of what fills most of each.
  const boxes = (list, shift, scale, colour, paint) => {
    let column = -1, filled = 0, best = 0, bestColour = "", count = 0;
    const flush = () => {
      if (column >= 0 && filled > 0) paint(column, column + 1, bestColour, -1, Math.min(1, filled));
      column = -1;
      filled = best = 0;
    };
    for (let i = firstIn(list, view.from + shift); i < list.n && list.start[i] < view.to + shift; ++i) {
      if (list.end[i] < view.from + shift) continue;
      ++count;
      const x0 = margin.left + (list.start[i] - shift - view.from) * scale, x1 = margin.left + (list.end[i] - shift - view.from) * scale;
      if (x1 - x0 >= 1) {
        flush();
        paint(x0, x1, colour(list.id[i]), list.id[i], 1);
        continue;
      }
      const at = Math.floor(x0);
      if (at !== column) { flush(); column = at; }
      const share = Math.max(x1 - x0, 0.02);
      filled += share;
      if (share > best) { best = share; bestColour = colour(list.id[i]); }
    }
    flush();
    return count;
  };

  let style = {};
  const draw = () => {
    const began = performance.now();
    const ratio = window.devicePixelRatio || 1;
    width = canvas.parentElement.clientWidth;
    canvas.style.height = height + "px";
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const css = getComputedStyle(root), value = (name) => css.getPropertyValue(name).trim();
    style = {fg: value("--fg"), soft: value("--soft"), line: value("--line"), lane: value("--lane"), card: value("--card")};
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = style.card;
    context.fillRect(0, 0, width, height);
    const plot = width - margin.left - margin.right, scale = plot / (view.to - view.from);
    const font = (size, weight) => { context.font = `${weight || ""} ${size}px system-ui, "Segoe UI", Helvetica, Arial, sans-serif`; };
    let count = 0;

    context.textBaseline = "middle";
    for (const item of layout) {
      if (item.row === undefined) {
        font(13, "600");
        context.fillStyle = style.fg;
        context.textAlign = "left";
        const step = stepOf(item.head), several = timelines[item.head].steps.length > 1 ? `, step ${step.step}` : "";
        context.fillText(`${timelines[item.head].name}${several}: ${time(step.end - step.start)}`, 0, item.y + headHeight / 2);
        continue;
      }
      context.fillStyle = style.lane;
      context.fillRect(margin.left, item.y + 1, plot, rowHeight - 2);
      if (rowHeight >= 11 || item.row.rank % Math.ceil(12 / rowHeight) === 0) {
        font(Math.min(12, rowHeight));
        context.fillStyle = style.soft;
        context.textAlign = "right";
        const name = paired && timelines.length > 1 ? `${item.row.rank} ${timelines[item.row.timeline].name.slice(0, 4)}.` : `rank ${item.row.rank}`;
        context.fillText(name, margin.left - 8, item.y + rowHeight / 2);
      }
    }

    // Axis, with lines through all rows.
    const rough = (view.to - view.from) / Math.max(2, plot / 130), power = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= rough * 0.999);
    font(11);
    context.textAlign = "center";
    for (let tick = Math.ceil(view.from / step) * step; tick <= view.to; tick += step) {
      const exact = Math.round(tick / step) * step, x = margin.left + (exact - view.from) * scale;
      context.fillStyle = style.line;
      context.fillRect(x, margin.top - 4, 1, height - margin.top - margin.bottom + 4);
      context.fillStyle = style.soft;
      if (x > margin.left - 4 && x < width - 22) context.fillText(tickText(exact, step), x, 9);
    }

    context.save();
    context.beginPath();
    context.rect(margin.left, margin.top, plot, height);
    context.clip();
    const slim = rowHeight >= 14 ? 4 : rowHeight >= 10 ? 2 : 0, gap = rowHeight >= 14 ? 2 : 1;
    for (const item of layout) {
      if (item.row === undefined) continue;
      const row = item.row, e = timelines[row.timeline].events, shift = offset(row.timeline);
      const top = item.y + gap, tall = rowHeight - 2 * gap - (slim ? slim + 1 : 0);
      if (tinted) {
        const idle = timelines[row.timeline].idle;
        boxes(row.idle, shift, scale, (id) => data.causes[idle.cause[id]].colour, (x0, x1, colour, id, share) => {
          context.globalAlpha = 0.3 * share;
          context.fillStyle = colour;
          context.fillRect(x0, top, x1 - x0, tall);
        });
        context.globalAlpha = 1;
      }
      const numbered = tall >= 11;
      font(Math.min(11, tall - 1));
      context.textAlign = "center";
      count += boxes(row.work, shift, scale, (id) => colourOf(row, id), (x0, x1, colour, id, share) => {
        context.globalAlpha = 0.25 + 0.75 * share;
        context.fillStyle = colour;
        const border = id >= 0 && x1 - x0 > 4 ? 0.7 : 0;
        context.fillRect(x0, top, x1 - x0 - border, tall);
        if (id < 0 || !numbered || e.micro_batch[id] < 0) return;
        const text = String(e.micro_batch[id]);
        const a = Math.max(x0, margin.left), b = Math.min(x1, width - margin.right);
        if (b - a < 6 + 7 * text.length) return;
        context.fillStyle = "#10151c";
        context.fillText(text, (a + b) / 2, top + tall / 2 + 0.5);
      });
      context.globalAlpha = 1;
      if (slim) {
        const y = top + tall + 1;
        count += boxes(row.rest, shift, scale, (id) => colourOf(row, id), (x0, x1, colour, id, share) => {
          context.globalAlpha = 0.25 + 0.75 * share;
          context.fillStyle = colour;
          context.fillRect(x0, y, Math.max(x1 - x0, 0.6), slim);
        });
        context.globalAlpha = 1;
      }
    }
    // Where each step ends.
    context.lineWidth = 1.5;
    context.setLineDash([4, 3]);
    context.strokeStyle = style.fg;
    for (let number = 0; number < timelines.length; ++number) {
      const x = margin.left + (stepOf(number).end - offset(number) - view.from) * scale;
      const mine = layout.filter((item) => item.row && item.row.timeline === number);
      if (!mine.length || x < margin.left || x > width - margin.right) continue;
      for (const item of paired ? mine : [{y: mine[0].y, tall: mine[mine.length - 1].y - mine[0].y + rowHeight}]) {
        context.beginPath();
        context.moveTo(x, item.y);
        context.lineTo(x, item.y + (item.tall || rowHeight));
        context.stroke();
      }
    }
    context.setLineDash([]);
    context.restore();
    range.textContent = view.to - view.from >= high - low ? `${count} actions` : `${time(view.to - view.from)} shown, ${count} actions`;
    hook.milliseconds = performance.now() - began;
    hook.actions = count;
    return hook.milliseconds;
  };
  let pending = false;
  const later = () => {
    if (pending) return;
    pending = true;
    requestAnimationFrame(() => { pending = false; draw(); });
  };
  redraw = draw;

  // What is under the pointer.
  const find = (x, y) => {
    const item = layout.find((i) => i.row !== undefined && y >= i.y && y < i.y + rowHeight);
    if (!item || x < margin.left || x > width - margin.right) return null;
    const row = item.row, scale = (width - margin.left - margin.right) / (view.to - view.from);
    const at = view.from + (x - margin.left) / scale + offset(row.timeline), slack = 1.5 / scale;
    const search = (list) => {
      let best = -1, distance = slack;
      for (let i = firstIn(list, at - slack); i < list.n && list.start[i] <= at + slack; ++i) {
        const away = at < list.start[i] ? list.start[i] - at : at > list.end[i] ? at - list.end[i] : 0;
        if (away <= distance) { best = list.id[i]; distance = away; if (away === 0) break; }
      }
      return best;
    };
    const below = rowHeight >= 14 && y > item.y + rowHeight - 7;
    const order = below ? [["rest", row.rest], ["work", row.work]] : [["work", row.work]];
    for (const [kind, list] of order) { const id = search(list); if (id >= 0) return {row, kind, id}; }
    const id = search(row.idle);
    if (id >= 0) return {row, kind: "idle", id};
    const other = search(row.rest);
    return other >= 0 ? {row, kind: "rest", id: other} : null;
  };
  const describe = ({row, kind, id}) => {
    const t = timelines[row.timeline], shift = offset(row.timeline), line = (k, v) => `<br><span>${k}</span> ${escape(v)}`;
    const where = `${t.name}, rank ${row.rank}`;
    if (kind === "idle") {
      const idle = t.idle, cause = data.causes[idle.cause[id]].name;
      const peer = idle.peer[id] >= 0 ? `, for rank ${idle.peer[id]}` : "";
      return `<b>idle: ${escape(cause)}${peer}</b><span>${where}</span>` + line("from", time(idle.at[id] - shift)) + line("for", time(idle.length[id]));
    }
    const e = t.events, c = data.classes[e.class[id]];
    let text = `<b>${escape(c.name)}</b><span>${where}</span>`;
    text += line("stage", e.stage[id] + (e.micro_batch[id] >= 0 ? `, micro-batch ${e.micro_batch[id]}` : "") + (e.part[id] ? `, part ${e.part[id]}` : ""));
    if (e.peer[id] >= 0) text += line(c.kind === "send" ? "to rank" : c.kind === "recv" ? "from rank" : "group", e.peer[id]);
    text += line("start", time(e.at[id] - shift)) + line("duration", time(e.length[id]));
    if (e.waited[id] > 0) text += line(c.kind === "recv" ? "posted before" : "waited", time(e.waited[id]));
    if (e.bytes[id] > 0) text += line("bytes", bytes(e.bytes[id]));
    return text + line("mark", c.mark);
  };
  const hideTip = () => { tip.style.display = "none"; };
  const showTip = (x, y) => {
    const hit = find(x, y);
    if (!hit) return hideTip();
    tip.innerHTML = describe(hit);
    tip.style.display = "block";
    const w = tip.offsetWidth, h = tip.offsetHeight;
    tip.style.left = Math.max(0, x + 16 + w > width ? x - w - 12 : x + 16) + "px";
    tip.style.top = Math.max(0, Math.min(y + 14, height - h)) + "px";
  };

  const timeAt = (x) => view.from + (x - margin.left) / (width - margin.left - margin.right) * (view.to - view.from);
  const zoom = (factor, centre) => {
    setView(centre - (centre - view.from) * factor, centre + (view.to - centre) * factor);
    later();
  };
  canvas.addEventListener("wheel", (event) => {
    // When everything is shown, the wheel scrolls the page on.
    const whole = view.to - view.from >= (most() - least()) * 1.03;
    if (event.deltaY > 0 && whole && !event.shiftKey) return;
    event.preventDefault();
    const span = view.to - view.from;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      const move = span * 0.001 * (event.deltaX || event.deltaY);
      setView(view.from + move, view.to + move);
      later();
    } else {
      zoom(Math.exp(Math.max(-80, Math.min(80, event.deltaY)) * 0.003), timeAt(event.offsetX));
    }
    hideTip();
  }, {passive: false});
  let drag = null;
  canvas.addEventListener("pointerdown", (event) => {
    drag = {x: event.clientX, from: view.from, to: view.to};
    canvas.setPointerCapture(event.pointerId);
    canvas.classList.add("dragging");
    hideTip();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) return showTip(event.offsetX, event.offsetY);
    const move = (drag.x - event.clientX) / (width - margin.left - margin.right) * (drag.to - drag.from);
    setView(drag.from + move, drag.to + move);
    later();
  });
  const drop = () => { drag = null; canvas.classList.remove("dragging"); };
  canvas.addEventListener("pointerup", drop);
  canvas.addEventListener("pointercancel", drop);
  canvas.addEventListener("pointerleave", hideTip);
  canvas.addEventListener("dblclick", () => { showAll(); later(); });
  canvas.addEventListener("keydown", (event) => {
    const span = view.to - view.from, middle = (view.from + view.to) / 2;
    const move = (share) => { setView(view.from + share * span, view.to + share * span); later(); };
    if (event.key === "ArrowLeft") move(-0.15);
    else if (event.key === "ArrowRight") move(0.15);
    else if (event.key === "+" || event.key === "=") zoom(0.7, middle);
    else if (event.key === "-") zoom(1 / 0.7, middle);
    else if (event.key === "0" || event.key === "Home") { showAll(); later(); }
    else return;
    event.preventDefault();
  });

  // Toolbar.
  const add = (tag, text, act, name) => {
    const element = document.createElement(tag);
    element.textContent = text;
    if (name) element.setAttribute("aria-label", name);
    if (act) element.onclick = act;
    if (tag === "button") element.type = "button";
    tools.append(element);
    return element;
  };
  add("button", "all", () => { showAll(); later(); }, "show the whole step");
  add("button", "+", () => zoom(0.6, (view.from + view.to) / 2), "zoom in");
  add("button", "−", () => zoom(1 / 0.6, (view.from + view.to) / 2), "zoom out");
  const check = (text, state, act) => {
    const box = document.createElement("input"), wrap = add("label", "");
    box.type = "checkbox";
    box.checked = state;
    box.onchange = () => { act(box.checked); arrange(); draw(); };
    wrap.append(box, text);
  };
  if (timelines.length > 1) check("rank by rank", paired, (on) => { paired = on; });
  check("tint idle time by cause", tinted, (on) => { tinted = on; });
  timelines.forEach((t, number) => {
    if (t.steps.length < 2) return;
    const wrap = add("label", `${t.name} step `), select = document.createElement("select");
    t.steps.forEach((s, i) => select.add(new Option(`${s.step}${s.typical ? " (typical)" : ""}`, i, i === chosen[number], i === chosen[number])));
    select.onchange = () => { chosen[number] = Number(select.value); arrange(); showAll(); draw(); };
    wrap.append(select);
  });
  const range = add("span", "");
  range.className = "right";

  // What tests look at.
  const hook = {milliseconds: 0, actions: 0, draw, setView: (from, to) => { setView(from, to); return draw(); }, showAll: () => { showAll(); return draw(); },
                bounds: () => ({low, high}), view: () => view, find};
  window.penstock = hook;
  arrange();
  showAll();
  draw();
  window.addEventListener("resize", later);
  window.addEventListener("beforeprint", () => draw());
  window.addEventListener("afterprint", () => draw());
})();
