// One PredictedMetric: the decision with its reason, the last hour as charts and as a table, at any time of it.
import { Chart } from './chart.js';
import { amount, count, element, percent, podCount, span, time } from './dom.js';
import { Events } from './events.js';
import { Trace } from './trace.js';
import { WhatIf } from './whatif.js';

const kept = 720;

export class Metric {
  constructor(namespace, name) {
    this.namespace = namespace;
    this.name = name;
    this.title = `${namespace}/${name}`;
    this.history = {}; // columns
    this.picked = null; // the time that is looked at; null: now
    const pick = (at) => this.pick(at);
    this.charts = {
      total: new Chart('Load of all pods', [
        { key: 'capacity', label: 'Threshold × replicas', kind: 'limit', step: true },
        { key: 'planned', label: 'Planned for', kind: 'planned' },
        { key: 'total', label: 'Forecast for this time', kind: 'forecast' },
        { key: 'level', label: 'Load', kind: 'load' },
      ], amount, pick),
      replicas: new Chart('Replicas', [
        { key: 'desired', label: 'Desired', kind: 'forecast', step: true },
        { key: 'replicas', label: 'Set', kind: 'limit', step: true },
        { key: 'ready', label: 'Ready', kind: 'ready', step: true },
      ], count, pick),
      pod: new Chart('Load of a pod', [
        { key: 'threshold', label: 'Threshold', kind: 'limit', step: true },
        { key: 'predicted', label: 'Predicted by then for the horizon', kind: 'forecast' },
        { key: 'load', label: 'Load', kind: 'load' },
      ], amount, pick),
    };
    this.target = element('p', { class: 'soft' });
    this.badge = element('span', { class: 'badge' });
    this.message = element('span');
    this.slider = element('input', { type: 'range', step: 5, oninput: () => this.pick(Number(this.slider.value)) });
    this.when = element('output', {});
    this.live = element('button', { type: 'button', 'aria-pressed': 'true', onclick: () => this.pick(null) }, 'Live');
    this.facts = element('dl');
    this.rows = element('tbody');
    this.table = element('details', { class: 'panel', ontoggle: () => this.fillTable() },
      element('summary', {}, 'The last hour as a table'),
      element('div', { class: 'scroll', role: 'region', 'aria-label': 'The last hour', tabindex: 0 }, element('table', {},
        element('caption', { class: 'hidden' }, 'The state at each minute, the newest first'),
        element('thead', {}, element('tr', {}, ...['Time', 'Load', 'Forecast', 'Load of a pod', 'Threshold', 'Ready', 'Set', 'Desired', 'Decision']
          .map((head, i) => element('th', { scope: 'col', class: i > 0 && i < 8 ? 'number' : '' }, head)))),
        this.rows)));
    this.events = new Events('predictedmetrics', namespace, name);
    this.trace = new Trace(namespace, name);
    this.whatif = new WhatIf(namespace, name);
    this.node = element('div', {},
      element('h1', {}, this.title), this.target,
      element('section', { class: 'panel', 'aria-label': 'Decision' },
        element('p', { class: 'decision' }, this.badge, this.message)),
      element('div', { class: 'panel scrub' }, element('label', {}, 'Time', this.slider), this.when, this.live),
      ...Object.values(this.charts).map((chart) => chart.node),
      element('section', { class: 'panel', 'aria-label': 'Now' }, element('h2', {}, 'Now'), this.facts),
      this.trace.node, this.table, this.events.node, this.whatif.node);
  }

  continues(namespace, name) { return namespace === this.namespace && name === this.name; }

  // fail goes on with what needs no replica.
  fail(problem) {
    this.events.look();
    this.trace.lose(problem);
  }

  leave() {
    this.events.leave();
    this.trace.leave();
    this.whatif.leave();
  }

  path() {
    const newest = this.history.at?.at(-1);
    return `dashboard/v1/metrics/${encodeURIComponent(this.namespace)}/${encodeURIComponent(this.name)}${newest ? `?since=${newest}` : ''}`;
  }

  show(detail) {
    this.trace.look();
    this.detail = detail;
    for (const [column, values] of Object.entries(detail.history)) {
      this.history[column] = [...(this.history[column] ?? []), ...values].slice(-kept);
    }
    const m = detail.metric;
    this.target.textContent = `${m.targetKind} ${m.targetName} in namespace ${m.namespace}`;
    this.describe();
    this.draw();
    if (this.table.open) this.fillTable();
    this.events.look();
  }

  describe() {
    const d = this.detail;
    const m = d.metric;
    const facts = [
      ['Replicas', `${count(m.ready)} ready, ${count(m.replicas)} set, ${count(m.desired)} desired`],
      ['Load of a pod', `${amount(m.loadPerPod)}, threshold ${amount(m.threshold)}`],
      ['Predicted', `${amount(m.predictedPerPod)} a pod in ${span(d.horizonSeconds)}`],
      ['Pods start in', d.startupsMeasured > 0 ? `${span(d.startupSeconds)}, measured from ${d.startupsMeasured} starts` : `${span(d.startupSeconds)}, assumed`],
      ['Learned from', m.learnedSeconds > 0 ? `${span(m.learnedSeconds)} of this load` : 'nothing yet'],
      ['Pods too few', m.lateRatio === null ? 'not known yet' : `${percent(m.lateRatio)} of the last day${m.lateness > 0 ? `; asked for ${percent(m.lateness)}` : ''}`],
      ['Forecast error', d.forecastErrorRatio === null ? 'not known yet' : `${percent(d.forecastErrorRatio)} of that of the present load, taken to stay`],
      ['Samples', `${d.source || 'no source'}, one each ${span(d.sampleIntervalSeconds)}, the newest ${span(d.sampleAgeSeconds)} old`],
    ];
    if (m.dryRun) facts.unshift(['Dry run', 'spec.dryRun is true: nothing acts on this forecast']);
    if (d.metricsOfTarget > 1) facts.push(['All of this target', `${count(d.targetDesired)} replicas, by ${d.drivenBy || 'none'} of ${d.metricsOfTarget}`]);
    if (d.unreadablePods > 0) facts.push(['Unreadable', podCount(d.unreadablePods)]);
    if (d.sourceError) facts.push(['Source', d.sourceError]);
    this.facts.replaceChildren(...facts.map(([term, text]) => element('div', {}, element('dt', {}, term), element('dd', {}, text))));
  }

  pick(at) {
    const all = this.history.at ?? [];
    const newest = all.at(-1);
    this.picked = at === null || newest === undefined || at >= newest ? null : Math.max(at, all[0]);
    this.draw();
  }

  // index is that of the point at the time that is looked at, -1 without points.
  index() {
    const at = this.history.at ?? [];
    if (this.picked === null) return at.length - 1;
    let i = 0;
    while (i + 1 < at.length && at[i + 1] <= this.picked) i++;
    return at.length === 0 ? -1 : i;
  }

  draw() {
    if (!this.detail) return;
    const h = this.history;
    const live = this.picked === null;
    const i = this.index();
    const now = Date.parse(this.detail.time) / 1000;
    this.live.setAttribute('aria-pressed', String(live));
    this.slider.disabled = i < 0;
    set(this.badge, live || i < 0 ? this.detail.metric.reason : h.reason[i]);
    set(this.message, live || i < 0 ? this.detail.message : h.message[i]);
    if (i < 0) {
      set(this.when, 'Recording begins; the first point comes within 5s.');
      return;
    }
    const at = h.at[i];
    this.slider.min = h.at[0];
    this.slider.max = h.at.at(-1);
    this.slider.value = at;
    this.slider.setAttribute('aria-valuetext', `${time(at)}, ${h.reason[i]}`);
    set(this.when, live ? `${time(at)}, now` : `${time(at)}, ${span(now - at)} ago`);

    const horizon = Math.max(60, ...h.horizonSeconds.slice(-1));
    const from = Math.max(h.at[0], now - 3600);
    const common = { from: Math.min(from, now - 300), to: now + horizon, cursor: live ? null : at, now };
    const points = (column) => h.at.map((t, j) => [t, column[j]]);
    const due = (column) => h.at.map((t, j) => [t + h.horizonSeconds[j], column[j]]);
    const total = due(h.total);
    const planned = due(h.planned);
    this.charts.total.show({
      ...common, points: { capacity: points(h.capacity), planned, total, level: points(h.level) },
      values: { capacity: h.capacity[i], planned: atTime(planned, at), total: atTime(total, at), level: h.level[i] },
    });
    this.charts.pod.show({
      ...common, points: { threshold: points(h.threshold), predicted: points(h.predictedPerPod), load: points(h.loadPerPod) },
      values: { threshold: h.threshold[i], predicted: h.predictedPerPod[i], load: h.loadPerPod[i] },
    });
    this.charts.replicas.show({
      ...common, points: { desired: points(h.desired), replicas: points(h.replicas), ready: points(h.ready) },
      values: { desired: h.desired[i], replicas: h.replicas[i], ready: h.ready[i] },
    });
  }

  fillTable() {
    if (!this.table.open || !this.history.at) return;
    const h = this.history;
    const rows = [];
    let minute = null;
    for (let i = h.at.length - 1; i >= 0; i--) {
      if (Math.floor(h.at[i] / 60) === minute) continue;
      minute = Math.floor(h.at[i] / 60);
      rows.push(element('tr', {}, element('th', { scope: 'row' }, time(h.at[i])),
        ...[amount(h.level[i]), amount(h.total[i]), amount(h.loadPerPod[i]), amount(h.threshold[i]), count(h.ready[i]), count(h.replicas[i]), count(h.desired[i])]
          .map((text) => element('td', { class: 'number' }, text)),
        element('td', {}, h.reason[i])));
    }
    this.rows.replaceChildren(...rows);
  }
}

// atTime is the value of the last point up to a time.
function atTime(points, at) {
  let value = null;
  for (const [t, v] of points) {
    if (t > at) break;
    value = at - t > 20 ? null : v;
  }
  return value;
}

// set leaves the node alone if its text stays, so that what is read aloud is not read again.
function set(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
