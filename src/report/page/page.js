"use strict";
(() => {
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));
  const plain = (text) => text.normalize("NFKC").toLowerCase();
  const make = (tag, values = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), values);
    element.append(...children);
    return element;
  };

  // Tables: a button sorts up, then down, then as it was.
  const value = (cell) => (cell.dataset.v !== undefined ? Number(cell.dataset.v) : cell.textContent);
  const compare = (a, b) => {
    const [x, y] = [typeof a === "number", typeof b === "number"];
    if (x && y) return a - b;
    return x !== y ? (x ? -1 : 1) : a.localeCompare(b, "en", { numeric: true });
  };
  for (const table of all("table")) {
    const body = table.tBodies[0];
    const rows = Array.from(body.rows);
    all(".sort", table).forEach((button, column) => {
      button.addEventListener("click", () => {
        const head = button.closest("th");
        const next = { undefined: "ascending", ascending: "descending", descending: undefined }[head.getAttribute("aria-sort") ?? undefined];
        all("[aria-sort]", table).forEach((other) => other.removeAttribute("aria-sort"));
        const sorted = rows.slice();
        if (next) {
          head.setAttribute("aria-sort", next);
          sorted.sort((a, b) => compare(value(a.cells[column]), value(b.cells[column])));
          if (next === "descending") sorted.reverse();
        }
        body.append(...sorted);
      });
    });
  }

  // Filters: every word must occur.
  const filter = (input, items, what, shown) => {
    const status = input.parentElement.querySelector("[role=status]");
    input.addEventListener("input", () => {
      const words = plain(input.value).split(/\s+/).filter(Boolean);
      let count = 0;
      for (const [item, text] of items) {
        const fits = words.every((word) => text.includes(word));
        item.hidden = !fits;
        count += fits ? 1 : 0;
      }
      status.textContent = words.length ? `${count} of ${items.length} ${what}` : "";
      if (shown) shown();
    });
  };
  for (const input of all("input[data-table]")) {
    const rows = Array.from(document.getElementById(input.dataset.table).tBodies[0].rows);
    filter(input, rows.map((row) => [row, plain(row.textContent)]), "rows");
  }
  const find = document.getElementById("find");
  const sections = all("section.run");
  const text = (section) =>
    plain([section.dataset.words, ...all("h3, p, dd, caption, th, td, figcaption", section).map((e) => e.textContent)].join(" "));
  filter(find, sections.map((section) => [section, text(section)]), "results", () => {
    for (const link of all("nav a, .overview tbody a")) {
      const target = document.getElementById(link.hash.slice(1));
      if (target?.matches("section")) link.closest("li, tr").hidden = target.hidden;
    }
    for (const group of all("nav li:has(> span)")) group.hidden = all("li:not([hidden])", group).length === 0;
    for (const heading of all("main > h2:not(#overview)")) {
      let next = heading.nextElementSibling;
      while (next?.matches("section[hidden]")) next = next.nextElementSibling;
      heading.hidden = !next?.matches("section");
    }
  });

  // The list of contents is folded on a phone, and what is folded opens where a link leads into it and on paper.
  const narrow = matchMedia("(max-width: 69.99rem)");
  const contents = document.querySelector("nav details");
  contents.open = !narrow.matches;
  narrow.addEventListener("change", () => { contents.open = !narrow.matches; });
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = all("main details:not([open])");
    folded.forEach((details) => { details.open = true; });
  });
  addEventListener("afterprint", () => folded.forEach((details) => { details.open = false; }));

  // Charts, drawn when they come near.
  const ink = "#1b1b1b";
  const number = (v) => (v === null ? "no value" : Number(v.toPrecision(4)).toString());
  const positive = (curves, axis) => curves.some((c) => c.kind !== "level" && c[axis].some((v) => v > 0));

  const traces = (panel) => {
    const seen = new Set();
    const xs = panel.curves.filter((c) => c.kind !== "level").flatMap((c) => c.x).filter((v) => v !== null);
    const ends = xs.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);
    return panel.curves.map((curve) => {
      const level = curve.kind === "level";
      const points = curve.kind === "points";
      const first = curve.name !== "" && !seen.has(curve.name);
      seen.add(curve.name);
      return {
        type: "scatter",
        x: level ? ends : curve.x,
        y: level ? ends.map(() => curve.y[0]) : curve.y,
        mode: points ? "markers" : !level && curve.x.length <= 40 ? "lines+markers" : "lines",
        name: curve.name,
        legendgroup: curve.name,
        showlegend: first,
        hoverinfo: curve.name || points ? undefined : "skip",
        hovertemplate: curve.name ? "%{y:.4g}" : points ? "lowest: %{y:.4g}<extra></extra>" : undefined,
        line: { color: curve.color, dash: curve.dash, width: curve.width * 1.7 },
        marker: points ? { color: curve.color, symbol: "star", size: 11 } : { color: curve.color, size: 5 },
      };
    });
  };

  const layout = (panel, logs, wide) => {
    const axis = (title, log) => ({
      title: { text: title, standoff: 8 },
      type: log ? "log" : "linear",
      exponentformat: "power",
      dtick: undefined,
      gridcolor: "#e2e2e2",
      zeroline: false,
      linecolor: ink,
      ticks: "outside",
      automargin: true,
      hoverformat: ".4~g",
    });
    return {
      title: panel.title ? { text: panel.title, font: { size: 14 }, y: 0.98, yanchor: "top" } : undefined,
      font: { color: ink, size: wide ? 13 : 12, family: "system-ui, sans-serif" },
      paper_bgcolor: "#fff",
      plot_bgcolor: "#fff",
      margin: { l: 8, r: 12, t: panel.title ? 44 : 30, b: 8 },
      height: wide ? 460 : 440,
      hovermode: wide ? "x unified" : "closest",
      dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
      legend: { orientation: "h", x: 0, y: -0.22, yanchor: "top", font: { size: 12 } },
      xaxis: axis(panel.x, logs.x),
      yaxis: axis(panel.y, logs.y),
    };
  };

  const draw = (box) => {
    const chart = JSON.parse(box.querySelector("script").textContent);
    box.querySelector(".wait").remove();
    const bar = make("div", { className: "bar" });
    const plot = make("div", { className: "plot", tabIndex: 0 });
    const hint = make("p", { className: "hint", id: `${box.id}-hint` });
    const touch = matchMedia("(pointer: coarse)").matches;
    const keys = touch ? "Touch a point for its value; a legend entry hides its curve."
      : "Arrow keys: points and curves; + and −: zoom; 0: all. Drag to zoom, double-click for all; a legend entry hides its curve.";
    hint.textContent = keys;
    hint.setAttribute("role", "status");
    plot.setAttribute("role", "group");
    plot.setAttribute("aria-label", box.dataset.label);
    plot.setAttribute("aria-describedby", hint.id);
    const start = Number(box.dataset.start);
    let panel = chart.panels[start];
    let logs = { x: panel.x_log, y: panel.y_log };
    let at = { curve: 0, point: -1 };
    const boxes = ["x", "y"].map((axis) => {
      const input = make("input", { type: "checkbox" });
      input.addEventListener("change", () => { logs[axis] = input.checked; show(); });
      bar.append(make("label", {}, input, `logarithmic ${axis}`));
      return [axis, input];
    });
    const show = () => {
      const wide = box.clientWidth > 560;
      for (const [axis, input] of boxes) {
        input.checked = logs[axis];
        input.disabled = !positive(panel.curves, axis);
      }
      at = { curve: 0, point: -1 };
      const settings = { responsive: true, displaylogo: false, displayModeBar: wide, modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"] };
      Plotly.react(plot, traces(panel), layout(panel, logs, wide), settings);
    };
    if (chart.panels.length > 1) {
      const select = make("select");
      chart.panels.forEach((p, i) => select.append(make("option", { value: i, textContent: p.title || `panel ${i + 1}` })));
      select.value = start;
      select.addEventListener("change", () => {
        panel = chart.panels[select.value];
        logs = { x: panel.x_log, y: panel.y_log };
        show();
      });
      bar.prepend(make("label", {}, "Panel", select));
    }
    const reset = make("button", { type: "button", textContent: "Show all" });
    const whole = () => Plotly.relayout(plot, { "xaxis.autorange": true, "yaxis.autorange": true });
    reset.addEventListener("click", whole);
    bar.append(reset);
    const zoom = (factor) => {
      const change = {};
      for (const name of ["xaxis", "yaxis"]) {
        const [a, b] = plot._fullLayout[name].range;
        const [middle, half] = [(a + b) / 2, ((b - a) / 2) * factor];
        change[`${name}.range`] = [middle - half, middle + half];
      }
      Plotly.relayout(plot, change);
    };
    const step = (curves, points) => {
      const named = plot.data.map((t, i) => i).filter((i) => plot.data[i].showlegend && plot.data[i].visible !== "legendonly");
      if (!named.length) return;
      at.curve = (at.curve + curves + named.length) % named.length;
      const trace = plot.data[named[at.curve]];
      at.point = Math.min(Math.max(at.point + points, 0), trace.x.length - 1);
      const [x, y] = [trace.x[at.point], trace.y[at.point]];
      Plotly.Fx.hover(plot, [{ curveNumber: named[at.curve], pointNumber: at.point }]);
      hint.textContent = `${trace.name}: ${panel.x} ${number(x)}, ${panel.y} ${number(y)}`;
    };
    plot.addEventListener("keydown", (event) => {
      const jump = () => (event.shiftKey ? Math.max(1, Math.round((plot.data[0]?.x.length ?? 0) / 20)) : 1);
      const action = {
        ArrowRight: () => step(0, jump()), ArrowLeft: () => step(0, -jump()), ArrowDown: () => step(1, 0), ArrowUp: () => step(-1, 0),
        "+": () => zoom(0.7), "=": () => zoom(0.7), "-": () => zoom(1 / 0.7), 0: whole,
      }[event.key];
      if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      action();
    });
    plot.addEventListener("blur", () => { hint.textContent = keys; });
    box.append(bar, plot, hint);
    show();
  };
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries.filter((e) => e.isIntersecting)) {
      near.unobserve(entry.target);
      draw(entry.target);
    }
  }, { rootMargin: "800px" });
  all(".chart").forEach((box) => near.observe(box));
})();
