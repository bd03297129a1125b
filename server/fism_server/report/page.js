"use strict";
// Draws a view (see view.py): the one in this page, or those that a server sends during the run.
(() => {
  const shown = { axis: "rounds", scale: "log", view: null };
  const byId = (id) => document.getElementById(id);

  const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children); // strings become text: nothing in a view is markup
    return made;
  };

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const TONES = ["one", "two", "three"];
  const DASHES = ["solid", "dash", "dot"];
  const MARKS = ["circle", "diamond-open", "x-thin-open"];
  // Plotly interprets some markup in its texts; names of columns and clients must be shown literally.
  const plain = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const short = (text) => (text.length > 28 ? `${text.slice(0, 27)}…` : text);

  const axisStyle = (title) => ({
    title: { text: title, standoff: 8 },
    gridcolor: colour("grid"),
    zerolinecolor: colour("line"),
    linecolor: colour("line"),
  });

  const heightOf = (plot) => (plot.categories.length ? 110 + 22 * plot.categories.length : 300);

  const layoutOf = (plot) => ({
    autosize: true,
    height: heightOf(plot),
    margin: { l: 72, r: 16, t: plot.series.length > 1 ? 36 : 12, b: 52 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, sans-serif", size: 13, color: colour("text") },
    showlegend: plot.series.length > 1,
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" },
    hoverlabel: { namelength: -1 },
  });

  const curves = (plot) => {
    const x = plot[shown.axis];
    const logarithmic = shown.scale === "log";
    const positive = plot.series.every((one) => one.values.every((value) => value === null || value > 0));
    const traces = plot.series.map((one, i) => ({
      type: "scatter",
      mode: x.length < 3 ? "lines+markers" : "lines",
      name: plain(one.name),
      x,
      y: one.values,
      line: { color: colour(TONES[i]), width: 2, dash: plot.kind === "areas" ? "solid" : DASHES[i] },
      ...(plot.kind === "areas" ? { stackgroup: "all" } : {}),
    }));
    const layout = layoutOf(plot);
    layout.xaxis = {
      ...axisStyle(shown.axis === "rounds" ? "round" : "time (s)"),
      type: logarithmic ? "log" : "linear",
    };
    layout.yaxis = {
      ...axisStyle(plain(plot.label)),
      nticks: 6,
      type: positive && (plot.scale === "log" || (plot.scale === "chosen" && logarithmic)) ? "log" : "linear",
      exponentformat: "power",
      ...(plot.kind === "areas" ? { rangemode: "tozero" } : {}),
      ...(plot.top === null ? {} : { range: [0, plot.top] }),
    };
    return [traces, layout];
  };

  const bars = (plot) => {
    const places = plot.categories.map((_, i) => i);
    const traces = plot.series.map((one, i) => {
      const common = {
        name: plain(one.name), x: one.values, y: places, customdata: plot.categories.map(plain),
        hovertemplate: "%{customdata}: %{x:.6g}",
      };
      return plot.kind === "bars" || i === 0
        ? { ...common, type: "bar", orientation: "h", marker: { color: colour(TONES[i]) } }
        : { ...common, type: "scatter", mode: "markers", marker: { symbol: MARKS[i], size: 10, color: colour(TONES[i]), line: { width: 2, color: colour(TONES[i]) } } };
    });
    const layout = layoutOf(plot);
    layout.barmode = "stack";
    layout.xaxis = axisStyle(plain(plot.label));
    const longest = Math.max(...plot.categories.map((name) => short(name).length));
    layout.margin.l = Math.min(24 + 7 * longest, 0.45 * byId(`plot-${plot.id}`).clientWidth);
    layout.yaxis = {
      autorange: "reversed", tickvals: places, ticktext: plot.categories.map((name) => plain(short(name))), showgrid: false,
    };
    return [traces, layout];
  };

  const draw = (plot) => {
    const place = byId(`plot-${plot.id}`);
    const [traces, layout] = plot.kind === "lines" || plot.kind === "areas" ? curves(plot) : bars(plot);
    return Plotly.react(place, traces, layout, { displayModeBar: false, responsive: true });
  };

  // Text and tables appear before Plotly, most of the page, is loaded; plots are drawn when they come near the viewport.
  const ready = new Promise((resolve) => { document.addEventListener("DOMContentLoaded", resolve); });
  const near = new Set();
  const stale = new Set();
  const drawNear = async () => {
    await ready;
    for (const plot of shown.view.sections.flatMap((section) => section.plots)) {
      if (near.has(`plot-${plot.id}`) && stale.delete(`plot-${plot.id}`)) await draw(plot);
    }
  };
  const observer = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) near[isIntersecting ? "add" : "delete"](target.id);
    drawNear().then(() => { document.body.dataset.drawn ??= String(Math.round(performance.now())); });
  }, { rootMargin: "400px" });
  const redraw = () => {
    for (const plot of shown.view.sections.flatMap((section) => section.plots)) stale.add(`plot-${plot.id}`);
    return drawNear();
  };
  addEventListener("beforeprint", () => {
    for (const plot of shown.view.sections.flatMap((section) => section.plots)) {
      if (stale.delete(`plot-${plot.id}`)) draw(plot); // immediately: what is drawn later is not printed
    }
  });

  const isNumber = (cell) => /^-?[\d,.]*(e[-+]?\d+)?( ?%)?$/.test(cell);

  const table = (given) => {
    const text = given.columns.map((_, i) => given.rows.some((row) => !isNumber(row[i])));
    const cell = (name, content, i, more = {}) => element(name, { ...(text[i] ? { class: "text" } : {}), ...more }, content);
    const head = element("tr", {}, ...given.columns.map((name, i) => cell("th", name, i, { scope: "col" })));
    const rows = given.rows.map((row) => element("tr", {}, ...row.map((content, i) =>
      (i ? cell("td", content, i) : cell("th", content, i, { scope: "row" })))));
    const made = element("table", {}, element("caption", {}, given.caption), element("thead", {}, head), element("tbody", {}, ...rows));
    return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": given.caption }, made);
  };

  const choice = (legend, name, options) => {
    const inputs = options.map(([value, label]) => {
      const input = element("input", { type: "radio", name, value });
      input.checked = shown[name] === value;
      input.addEventListener("change", () => { shown[name] = value; redraw(); });
      return element("label", {}, input, ` ${label}`);
    });
    return element("fieldset", {}, element("legend", {}, legend), ...inputs);
  };

  const controls = () => element(
    "div", { class: "controls" },
    choice("Over", "axis", [["rounds", "rounds"], ["seconds", "seconds"]]),
    choice("Axes", "scale", [["log", "logarithmic"], ["linear", "linear"]]),
  );

  const figure = (plot) => element(
    "figure", {},
    element("figcaption", { id: `caption-${plot.id}` }, plot.title),
    element("div", {
      class: "plot", id: `plot-${plot.id}`, role: "img", "aria-labelledby": `caption-${plot.id}`,
      style: `min-height: ${heightOf(plot)}px`, // so that nothing moves when it is drawn
    }),
  );

  const tablesOf = (section) => element("div", { id: `tables-${section.id}` }, ...section.tables.map(table));

  const build = (section) => {
    const made = element("section", { id: section.id, "aria-labelledby": `title-${section.id}` },
      element("h2", { id: `title-${section.id}` }, section.title),
      element("div", { id: `text-${section.id}` }, ...section.text.map((one) => element("p", {}, one))));
    if (section.id === "progress") made.append(controls());
    const pair = element("div", { class: "pair" });
    if (section.plots.length) pair.append(element("div", {}, ...section.plots.map(figure)));
    if (section.tables.length) pair.append(tablesOf(section));
    made.append(pair);
    return made;
  };

  const shape = (view) => JSON.stringify(view.sections.map((one) => [one.id, one.plots.map((plot) => plot.id), one.tables.length]));

  const update = (section) => {
    byId(`text-${section.id}`).replaceChildren(...section.text.map((one) => element("p", {}, one)));
    const before = byId(`tables-${section.id}`);
    if (!before) return;
    const scrolled = [...before.children].map((one) => one.scrollTop);
    const focused = [...before.children].indexOf(document.activeElement);
    const after = tablesOf(section);
    before.replaceWith(after);
    [...after.children].forEach((one, i) => { one.scrollTop = scrolled[i] ?? 0; });
    if (focused >= 0) after.children[focused]?.focus({ preventScroll: true });
    for (const plot of section.plots) byId(`caption-${plot.id}`).textContent = plot.title;
  };

  const show = async (view) => {
    const same = shown.view && shape(shown.view) === shape(view);
    shown.view = view;
    document.title = `${view.title}: ${view.stage}`;
    document.body.dataset.stage = view.stage;
    byId("title").textContent = view.title;
    if (byId("status").textContent !== view.status) byId("status").textContent = view.status;
    byId("headline").replaceChildren(...view.headline.map(([name, value]) =>
      element("div", {}, element("dt", {}, name), element("dd", {}, value))));
    if (same) {
      view.sections.forEach(update);
    } else {
      byId("contents").replaceChildren(...view.sections.map((one) => element("a", { href: `#${one.id}` }, one.title)));
      observer.disconnect();
      near.clear();
      byId("main").replaceChildren(...view.sections.map(build));
      for (const place of document.querySelectorAll(".plot")) observer.observe(place);
    }
    await redraw();
  };

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => shown.view && redraw());

  const given = byId("view").textContent.trim();
  if (given) {
    show(JSON.parse(given));
    return;
  }
  const source = new EventSource("events");
  source.addEventListener("view", (event) => show(JSON.parse(event.data)));
  source.addEventListener("end", () => source.close());
  source.addEventListener("error", () => {
    document.body.dataset.stage = "lost";
    byId("status").textContent = "The page's server does not answer, or has too many viewers. The page shows the last data it sent.";
  });
})();
