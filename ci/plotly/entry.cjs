"use strict";
// plotly.js with the three kinds of trace that the charts of a report use: plotly's own core brings scatter.

const plotly = require("plotly.js/lib/core");

plotly.register([require("plotly.js/lib/bar"), require("plotly.js/lib/heatmap")]);
module.exports = plotly;
