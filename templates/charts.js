"use strict";
// The charts: drawn by plotly once the timeline stands, in the page's colours, again when those, the width or the GPU change.

const CONFIG = { displayModeBar: false, showTips: false, doubleClick: "reset", responsive: false };
const coarsePointer = matchMedia("(pointer: coarse)");

/** The library, from its packed block. Its text is in the page's policy, so a script element may run it. */
async function loadPlotly() {
  const script = document.createElement("script");
  script.textContent = await unpackText("plotly-code");
  document.body.append(script);
  script.remove();
  window.Plotly.setPlotConfig({ logging: 0 }); // names with dollars are no formulas, and nothing to complain about
  return window.Plotly;
}

/** The hatchings of kinds of time in plotly's words, one or many at once. */
function hatching(keys, colours, css) {
  const of = (key) => cssOfKind(key) && hatchOf(cssOfKind(key));
  const each = (take) => (Array.isArray(keys) ? keys.map(take) : take(keys));
  return {
    path: each((key) => of(key)?.path ?? ""),
    size: each((key) => of(key)?.size ?? HATCH_TILE),
    fgcolor: each((key) => (of(key) ? css(`--on-${cssOfKind(key)}`) : "")),
    bgcolor: colours,
    fgopacity: Number(css("--hatch-strength")),
    fillmode: Array.isArray(keys) ? "overlay" : "replace", // where each mark has a colour of its own, plotly lays the hatching over that
  };
}

/** What the style sheet calls a kind of time; null for other colours. */
const cssOfKind = (name) => (name === "ink" || name === "dim" || name.startsWith("series-") ? null : name.replace(/[._]/g, "-"));

/** A trace in the colours and hatchings of the page: its `meta` says which. */
function coloured(trace, css) {
  const colour = (name) => css(cssOfKind(name) ? `--c-${cssOfKind(name)}` : `--${name}`);
  if (trace.meta === "heat") return { ...trace, colorscale: [[0, css("--heat-low")], [1, css("--heat-high")]] };
  const own = Array.isArray(trace.meta) ? trace.meta.map(colour) : colour(trace.meta);
  const marker = { ...trace.marker, color: own };
  if (trace.type === "bar") return { ...trace, marker: { ...marker, pattern: hatching(trace.meta, own, css) }, textfont: { color: css("--dim") } };
  if (trace.mode === "text") return { ...trace, textfont: { color: css("--ink") } };
  const filled = trace.stackgroup ? { fillcolor: own, fillpattern: hatching(trace.meta, own, css) } : {};
  return { ...trace, marker, ...filled, line: { ...trace.line, color: own } };
}

/** The page's looks as a plotly template, under whatever the figure itself says. */
function template(css) {
  const lines = { gridcolor: css("--rule"), zerolinecolor: css("--rule"), linecolor: css("--rule"), tickcolor: css("--rule"), zeroline: false };
  const font = { family: getComputedStyle(document.body).fontFamily, size: 12, color: css("--dim") };
  const hoverlabel = { bgcolor: css("--paper"), bordercolor: css("--dim"), align: "left", namelength: -1, font: { ...font, color: css("--ink") } };
  const plain = { paper_bgcolor: css("--paper"), plot_bgcolor: css("--paper"), dragmode: coarsePointer.matches ? false : "zoom" };
  return { layout: { ...plain, font, hoverlabel, xaxis: lines, yaxis: lines, separators: ".," } };
}

class Charts {
  constructor(plotly, views) {
    this.plotly = plotly;
    this.views = views;
    this.gpu = 0;
    this.printing = false;
    this.stale = new Set();
    this.figures = [...document.querySelectorAll(".drawing")].filter((place) => views[place.dataset.chart]);
    this.widths = new Map();
    for (const place of this.figures) this.prepare(place);
  }

  view(place) {
    const views = this.views[place.dataset.chart];
    const choice = Number(place.dataset.choice ?? 0);
    return views.find((view) => ((view.choice ?? null) === null ? view.gpu === null || view.gpu === this.gpu : view.choice === choice));
  }

  /** Draw all figures again, those in sight at once and the others when the page is idle. */
  renew(figures = this.figures) {
    for (const place of figures) this.stale.add(place);
    for (const place of figures) if (this.printing || this.inSight(place)) this.draw(place);
    this.goOn();
  }

  inSight(place) {
    const { top, bottom } = place.getBoundingClientRect();
    return bottom > 0 && top < innerHeight;
  }

  goOn() {
    if (this.waiting || !this.stale.size) return;
    this.waiting = true;
    whenIdle(() => {
      this.waiting = false;
      const next = this.figures.find((place) => this.stale.has(place) && this.inSight(place)) ?? this.stale.values().next().value;
      if (next) this.draw(next);
      this.goOn();
    });
  }

  draw(place) {
    this.stale.delete(place);
    const view = this.view(place);
    const figure = place.closest("figure");
    figure.hidden = !view;
    if (!view) return;
    figure.querySelector(".caption").textContent = view.caption;
    for (const [at, end] of (view.scale ?? []).entries()) figure.querySelectorAll(".scale span")[at].textContent = end;
    const style = getComputedStyle(document.documentElement);
    const css = (name) => style.getPropertyValue(name).trim();
    const width = this.printing ? PAPER_WIDTH : place.clientWidth;
    this.widths.set(place, place.clientWidth);
    // A zoomed axis stays zoomed in other colours, but not on another GPU, nor once it was reset.
    const uirevision = `${this.gpu} ${place.dataset.resets ?? 0}`; // as many rows and columns whatever is chosen
    place.querySelector(":scope > .still")?.remove();
    const layout = { ...view.layout, template: template(css), width, height: parseFloat(getComputedStyle(place).minHeight), uirevision };
    this.plotly.react(place, view.data.map((trace) => coloured(trace, css)), structuredClone(layout), CONFIG);
    place.classList.toggle("clickable", view.jumps.length > 0);
    if (!place.dataset.drawn) this.listen(place, figure);
    const best = figure.querySelector('[data-tool="best"]');
    if (best) best.hidden = view.best === null;
  }

  prepare(place) {
    this.stale.add(place);
    const resized = new ResizeObserver(() => {
      if (!this.printing && this.widths.has(place) && this.widths.get(place) !== place.clientWidth && place.clientWidth) this.renew([place]);
    });
    resized.observe(place);
    const choose = place.closest("figure").querySelector(".choose");
    if (!choose) return;
    choose.hidden = false;
    choose.querySelector("select").addEventListener("change", (event) => {
      place.dataset.choice = event.target.value;
      this.renew([place]);
    });
  }

  /** What one can do with a figure that stands: click marks, zoom and come back, save it. */
  listen(place, figure) {
    place.dataset.drawn = "true";
    const tools = figure.querySelector(".tools");
    const tool = (name) => tools.querySelector(`[data-tool="${name}"]`);
    tools.hidden = false;
    place.on("plotly_click", ({ points }) => this.jump(place, points[0].pointIndex));
    place.on("plotly_relayout", (changed) => {
      if (Object.keys(changed).some((key) => key.includes(".range["))) tool("reset").hidden = false;
    });
    place.on("plotly_doubleclick", () => (tool("reset").hidden = true));
    tool("best")?.addEventListener("click", () => this.jump(place, this.view(place).best));
    tool("reset").addEventListener("click", () => {
      place.dataset.resets = Number(place.dataset.resets ?? 0) + 1;
      tool("reset").hidden = true;
      this.draw(place);
      tool("save").focus();
    });
    tool("save").addEventListener("click", () => this.plotly.downloadImage(place, { format: "svg", filename: place.dataset.chart, width: place.clientWidth, height: place.clientHeight }));
  }

  jump(place, mark) {
    const jump = this.view(place).jumps[mark];
    if (jump) document.dispatchEvent(new CustomEvent("showrange", { detail: { from: jump[0], to: jump[1], group: jump[2] } }));
  }
}

const whenIdle = (task) => (window.requestIdleCallback ? requestIdleCallback(task, { timeout: 500 }) : setTimeout(task, 30));

async function showCharts() {
  const [plotly, views] = [await loadPlotly(), JSON.parse(await unpackText("charts-data"))];
  const charts = new Charts(plotly, views);
  charts.renew();
  document.addEventListener("themechange", () => charts.printing || charts.renew());
  document.getElementById("chart-gpu")?.addEventListener("change", (event) => {
    charts.gpu = Number(event.target.value);
    charts.renew();
  });
  for (const [event, printing] of [["beforeprint", true], ["afterprint", false]]) {
    window.addEventListener(event, () => {
      charts.printing = printing; // the page has its colours of paper, or its own again
      charts.renew();
    });
  }
  window.traceanalyzer = Object.assign(window.traceanalyzer ?? {}, { charts });
}

// After the timeline, which may stand already; whatever becomes of it, in the end.
if (document.getElementById("charts-data")) {
  let begun = false;
  const begin = () => {
    if (!begun) whenIdle(showCharts);
    begun = true;
  };
  const timeline = document.getElementById("timeline-data");
  if (!timeline || window.traceanalyzer?.timeline) begin();
  document.addEventListener("timelineready", begin);
  window.addEventListener("load", () => setTimeout(begin, 3000));
}
