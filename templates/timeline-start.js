"use strict";
// The start: from the packed data to the timeline on the page.

async function startTimeline() {
  performance.mark("timeline-start");
  const places = JSON.parse(document.getElementById("page-data").textContent);
  const buffer = await unpack("timeline-data");
  if (!buffer) {
    new Address(null, places).follow();
    return null;
  }
  performance.mark("timeline-unpacked");
  const data = decodeTimeline(buffer);
  performance.mark("timeline-decoded");
  const timeline = new Timeline(data, places);
  timeline.address.follow();
  performance.mark("timeline-painted");
  return timeline;
}

// For browser tests and the console: `view()` is what is shown, in ns since the first event; null until the timeline is ready.
window.traceanalyzer = {
  timeline: null,
  view() {
    return this.timeline && { start_ns: this.timeline.from, end_ns: this.timeline.to };
  },
};
// Scripts further down wait for the event, so it comes after they have been read.
const pageRead = new Promise((done) => (document.readyState === "loading" ? document.addEventListener("DOMContentLoaded", done) : done()));
startTimeline().then(async (timeline) => {
  window.traceanalyzer.timeline = timeline;
  await pageRead;
  document.dispatchEvent(new Event("timelineready"));
  if (timeline) setTimeout(timeline.links, 500); // so that the first arrow does not wait for it
});
