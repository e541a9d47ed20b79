"use strict";
// The timeline as a trace for Perfetto: built from what the page holds, handed to Perfetto's own tab or saved as a file. Only on a click.

const PERFETTO = "https://ui.perfetto.dev";
const PING_EVERY = 250; // ms
const GIVE_UP_AFTER = 30_000;
const EVENTS_A_PART = 20_000;

/** ns as decimal µs. Perfetto multiplies by 1,000 and cuts: where that would lose a nanosecond, a fourth decimal of 0.1 ns keeps it. */
function decimalMicros(ns) {
  const guard = Math.trunc((ns / 1000) * 1000) < ns ? "1" : "";
  const rest = ns % 1000;
  const whole = (ns - rest) / 1000;
  return rest || guard ? `${whole}.${String(rest).padStart(3, "0")}${guard}` : `${whole}`;
}

/** Whether each slice of a row lies inside one slice of another row, or apart from all of them. */
function nestsIn(outer, inner) {
  for (let i = 0, k = 0; i < inner.n; i++) {
    while (k < outer.n && outer.end[k] <= inner.start[i]) k++;
    if (k === outer.n) return true;
    if (inner.end[i] > outer.start[k] && (inner.start[i] < outer.start[k] || inner.end[i] > outer.end[k])) return false;
  }
  return true;
}

/** The rows of a lane by track: rows that nest in all others of a track share it. */
function tracksOf(rows) {
  const tracks = [];
  for (const row of rows) {
    const track = tracks.find((others) => others.every((outer) => nestsIn(outer, row)));
    if (track) track.push(row);
    else tracks.push([row]);
  }
  return tracks;
}

/** Collects the events of a trace as parts of JSON, and lets the page live meanwhile. */
class ChromeTrace {
  constructor(zero) {
    this.zero = zero; // the timeline's first time, from which the trace counts: it has none below 0
    this.parts = ['{"savedFrom":"a page of traceanalyzer","displayTimeUnit":"ns","traceEvents":['];
    this.lines = [];
    this.names = [];
    this.processes = 0;
    this.tracks = 1_000_000;
  }

  process(name) {
    return this.named("process", name, ++this.processes, this.processes);
  }

  track(process, name) {
    return this.named("thread", name, process, ++this.tracks);
  }

  named(what, name, pid, tid) {
    for (const args of [{ name }, { sort_index: tid }])
      this.names.push(JSON.stringify({ ph: "M", pid, tid, ts: 0, name: `${what}_${Object.keys(args)[0]}`, args }));
    return tid;
  }

  slice(pid, tid, start, end, rest) {
    this.lines.push(`{"ph":"X","pid":${pid},"tid":${tid},"ts":${decimalMicros(start - this.zero)},"dur":${decimalMicros(end - start)},${rest}}`);
  }

  async pause() {
    if (this.lines.length < EVENTS_A_PART) return;
    this.parts.push(this.lines.join(",\n"), ",\n");
    this.lines = [];
    await new Promise((resolve) => setTimeout(resolve));
  }

  /** The whole trace. */
  blob() {
    return new Blob([...this.parts, [...this.lines, ...this.names].join(",\n"), "]}"], { type: "application/json" });
  }
}

/** The trace of a decoded timeline. `findings`: number to [title, severity, message, gain]; `evidence`: number to [from, to, group, label]s. */
async function chromeTrace(data, findings, evidence) {
  const trace = new ChromeTrace(data.extent[0]);
  writeFindings(trace, findings, evidence);
  const names = data.names.map((name) => JSON.stringify(name));
  const calls = new Set(data.rows.filter((row) => row.link && !row.group.device).flatMap((row) => [...row.link]));
  for (const group of data.groups) {
    const pid = trace.process(group.label);
    for (const lane of group.lanes) {
      if (lane.kind === "counter") for (const row of lane.rows) await writeCounter(trace, pid, lane, row);
      else await writeLane(trace, pid, lane, { names, calls, quantum: data.quantum }, group.device ? "flow_in" : "flow_out");
    }
  }
  return trace.blob();
}

async function writeLane(trace, pid, lane, { names, calls, quantum }, flow) {
  for (const rows of tracksOf(lane.rows)) {
    const tid = trace.track(pid, lane.label);
    const category = JSON.stringify(lane.kind === "ledger" ? "traceanalyzer.ledger" : lane.label);
    for (const row of rows) {
      for (let i = 0; i < row.n; i++) {
        const arrow = row.link?.[i] && calls.has(row.link[i]) ? `,"bind_id":${row.link[i]},"${flow}":true` : "";
        const merged = isExact(row, i) ? "" : `,"args":{"events in this slice":${eventsOf(row, i)},"start moved by less than (ns)":${2 * quantum}}`;
        trace.slice(pid, tid, row.start[i], row.end[i], `"cat":${category},"name":${names[row.name[i]]}${arrow}${merged}`);
        await trace.pause();
      }
    }
  }
}

async function writeCounter(trace, pid, lane, row) {
  const name = JSON.stringify(lane.label);
  const unit = JSON.stringify(lane.unit || "value");
  for (let i = 0; i < row.n; i++) {
    trace.lines.push(`{"ph":"C","pid":${pid},"tid":${pid},"ts":${decimalMicros(row.time[i] - trace.zero)},"name":${name},"args":{${unit}:${row.value[i]}}}`);
    await trace.pause();
  }
}

/** A process with a track for each finding that has a place; items that overlap get tracks of their own. */
function writeFindings(trace, findings, evidence) {
  const pid = trace.process("traceanalyzer findings");
  for (const [number, [title, severity, message, gain]] of Object.entries(findings)) {
    const items = (evidence[number] ?? []).filter((item) => item && item[0] >= trace.zero).sort((a, b) => a[0] - b[0] || b[1] - a[1]);
    const rows = [];
    for (const item of items) {
      const row = rows.find((others) => others.at(-1)[1] <= item[0]);
      if (row) row.push(item);
      else rows.push([item]);
    }
    for (const row of rows) {
      const tid = trace.track(pid, title);
      for (const [from, to, , name] of row) {
        const about = JSON.stringify({ cat: "traceanalyzer.finding", name, args: { severity, message, ...(gain && { gain }) } });
        trace.slice(pid, tid, from, to, about.slice(1, -1));
      }
    }
  }
}

/** Hand a trace over to a tab of Perfetto: ask until it answers, then send once. False when it does not answer. */
function handOver(tab, trace) {
  return new Promise((resolve) => {
    const began = performance.now();
    const listen = async (message) => {
      if (message.source !== tab || message.origin !== PERFETTO || message.data !== "PONG") return;
      stop(true);
      const buffer = await (await trace).arrayBuffer();
      tab.postMessage({ perfetto: { buffer, title: document.title, fileName: traceName() } }, PERFETTO, [buffer]);
    };
    const ask = setInterval(() => {
      if (tab.closed || performance.now() - began > GIVE_UP_AFTER) stop(false);
      else tab.postMessage("PING", "*"); // any origin: until the tab has loaded it is not yet Perfetto's, and this tells nothing
    }, PING_EVERY);
    const stop = (answered) => {
      clearInterval(ask);
      removeEventListener("message", listen);
      resolve(answered);
    };
    addEventListener("message", listen);
  });
}

function traceName() {
  const plain = document.title.replace(/(\.(pt|trace|json|sqlite|gz|xz|zst|bz2|zip))+$/, "").replace(/[^\w.-]+/g, "-");
  return `${plain.replace(/^-|-$/g, "") || "report"}.trace.json`;
}

function download(trace) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(trace);
  link.download = traceName();
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

function setUpPerfetto(box) {
  const say = (text) => (box.querySelector("output").textContent = text);
  const facts = JSON.parse(document.getElementById("page-data").textContent);
  const build = () => chromeTrace(window.traceanalyzer.timeline.data, facts.findings, facts.evidence);
  box.querySelector("[data-trace=open]").addEventListener("click", async () => {
    const tab = window.open(PERFETTO); // first, while the click still counts
    if (!tab) return say("The browser blocked the new tab. Download the trace instead, and open it in Perfetto.");
    say("Waiting for Perfetto …");
    const answered = await handOver(tab, build());
    say(answered ? "Handed over; Perfetto may ask whether to open it." : "Perfetto did not answer. Download the trace, and open it there.");
  });
  box.querySelector("[data-trace=save]").addEventListener("click", async () => {
    download(await build());
    say(`Saved as ${traceName()}.`);
  });
  for (const button of box.querySelectorAll("button")) button.disabled = false;
}

const exportBox = document.getElementById("trace-export");
// The timeline may be ready before this script is read.
if (exportBox && window.traceanalyzer.timeline) setUpPerfetto(exportBox);
else if (exportBox) document.addEventListener("timelineready", () => window.traceanalyzer.timeline && setUpPerfetto(exportBox));
