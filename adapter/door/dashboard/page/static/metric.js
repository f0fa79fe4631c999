// One PredictedMetric: the decision with its reason or the cause of its failure, what is read and within which bounds, the last hour as
// charts and as a table, at any time of it.
import { Chart, valueAt } from './chart.js';
import { amount, because, count, element, facts, get, metricLink, percent, podCount, say, span, table, time, tooLittle } from './dom.js';
import { Events } from './events.js';
import { Trace } from './trace.js';
import { WhatIf } from './whatif.js';

const kept = 720;
const objectRest = 10000; // ms between two looks at the object

export class Metric {
  constructor(namespace, name) {
    this.namespace = namespace;
    this.name = name;
    this.title = `${namespace}/${name}`;
    this.history = {}; // columns
    this.picked = null; // the time that is looked at; null: now
    const chart = (title, lines, write) => new Chart(title, lines, write, (at) => this.pick(at), (at, of) => this.hover(at, of));
    this.charts = {
      total: chart('Load of all pods', [
        { key: 'capacity', label: 'Threshold × replicas', kind: 'limit', step: true },
        { key: 'planned', label: 'Planned for', kind: 'planned band' },
        { key: 'level', label: 'Load', kind: 'load' },
        { key: 'total', label: 'Forecast for this time', kind: 'forecast' },
      ], amount),
      replicas: chart('Replicas', [
        { key: 'max', label: 'Maximum', kind: 'bound', bound: true },
        { key: 'min', label: 'Minimum', kind: 'bound least', bound: true },
        { key: 'desired', label: 'Desired', kind: 'forecast', step: true },
        { key: 'replicas', label: 'Set', kind: 'limit', step: true },
        { key: 'ready', label: 'Ready', kind: 'ready', step: true },
      ], count),
      pod: chart('Load of a pod', [
        { key: 'threshold', label: 'Threshold', kind: 'limit', step: true },
        { key: 'load', label: 'Load', kind: 'load' },
        { key: 'predicted', label: 'Predicted by then for the horizon', kind: 'forecast' },
      ], amount),
    };
    this.target = element('p', { class: 'soft target' });
    this.badge = element('span', { class: 'badge' });
    this.message = element('span');
    this.failing = element('dl', { class: 'wide small' });
    this.decision = element('section', { class: 'panel', 'aria-label': 'Decision' }, element('p', { class: 'decision' }, this.badge, this.message), this.failing);
    this.slider = element('input', { type: 'range', step: 5, oninput: () => this.pick(Number(this.slider.value)) });
    this.when = element('output', {});
    this.live = element('button', { type: 'button', 'aria-pressed': 'true', onclick: () => this.pick(null) }, 'Live');
    this.first = element('dl');
    this.problem = element('p', { class: 'soft small', hidden: true });
    this.more = element('dl');
    this.rows = table('The state at each minute, the newest first', ['Time', 'Load', 'Forecast', 'Load of a pod', 'Threshold', 'Ready', 'Set', 'Desired', 'Decision']
      .map((head, i) => [head, i > 0 && i < 8 ? 'number' : '']));
    this.table = element('details', { class: 'panel', ontoggle: () => this.fillTable() }, element('summary', {}, 'The last hour as a table'), this.rows.node);
    this.events = new Events('predictedmetrics', namespace, name);
    this.trace = new Trace(namespace, name);
    this.whatif = new WhatIf(namespace, name);
    this.node = element('div', {},
      element('h1', {}, this.title), this.target, this.decision,
      element('section', { class: 'panel', 'aria-label': 'Now' }, this.first, this.problem),
      this.charts.total.node,
      element('div', { class: 'panel scrub' }, element('label', {}, 'Time', this.slider), this.when, this.live),
      element('div', { class: 'pair' }, this.charts.replicas.node, this.charts.pod.node),
      element('p', { class: 'soft small' }, '▲ and ▼ at the top of a chart: the target was set to more or fewer replicas. ◆: a Warning, or the forecast was lost.'),
      this.events.node, this.trace.node,
      element('section', { class: 'panel', 'aria-label': 'Figures' }, element('h2', {}, 'Figures'), this.more),
      this.table, this.whatif.node);
    this.objectDue = 0;
  }

  continues(namespace, name) { return namespace === this.namespace && name === this.name; }

  // fail goes on with what needs no replica.
  fail(problem) {
    this.events.look();
    this.refreshObject();
    this.trace.lose(problem);
  }

  leave() {
    this.request?.abort();
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
    if (!this.target.firstChild) {
      this.target.append(element('a', { href: `#/?search=${encodeURIComponent(`${m.targetKind}/${m.targetName}`)}` }, `${m.targetKind} ${m.targetName}`), ` in namespace ${m.namespace}`);
    }
    this.refreshObject();
    this.describe();
    this.draw();
    if (this.table.open) this.fillTable();
    this.events.look();
  }

  // refreshObject asks the command for metric, port and bounds, which the replica does not know.
  async refreshObject() {
    if (Date.now() < this.objectDue) return;
    this.objectDue = Date.now() + objectRest;
    const request = new AbortController();
    this.request = request;
    try {
      this.object = await get(`local/v1/predictedmetrics/${encodeURIComponent(this.namespace)}/${encodeURIComponent(this.name)}`, request.signal);
    } catch (error) {
      if (request.signal.aborted) return;
      this.object = { problem: because(error), facts: [], failing: [] };
    }
    say(this.problem, this.object.problem);
    facts(this.failing, this.object.failing.filter((c) => c.message !== this.detail?.metric.cause && c.reason !== this.detail?.metric.reason).map((c) => ({ name: c.type, text: `${c.status}, ${c.reason}: ${c.message}` })));
    this.describe();
    this.draw();
  }

  describe() {
    const d = this.detail;
    if (!d) return;
    const m = d.metric;
    const first = [
      ['Replicas', `${count(m.ready)} ready, ${count(m.replicas)} set, ${count(m.desired)} desired`],
      ['Load of a pod', `${m.loadPerPod === null ? 'not known' : `${amount(m.loadPerPod)} now, ${amount(m.predictedPerPod)} in ${span(d.horizonSeconds)}`}, threshold ${amount(m.threshold)}`],
      ...(this.object?.facts ?? []).filter((f) => f.name !== 'Threshold').map((f) => [f.name, f.text]),
      { name: 'Too few pods', text: late(m), soft: !m.lateJudged },
    ];
    if (m.dryRun) first.unshift(['Dry run', 'spec.dryRun is true: nothing acts on this forecast']);
    if (m.atMaximumRatio > 0) first.push({ name: 'At the maximum', text: ofDay(m, m.atMaximumRatio), soft: !m.lateJudged });
    if (d.unreadablePods > 0) first.push(['Unreadable', podCount(d.unreadablePods)]);
    if (d.sourceError) first.push(['Source', d.sourceError]);
    const more = [
      ['Pods start in', d.startupsMeasured > 0 ? `${span(d.startupSeconds)}, measured from ${d.startupsMeasured} starts` : `${span(d.startupSeconds)}, assumed`],
      ['Learned from', m.learnedSeconds > 0 ? `${span(m.learnedSeconds)} of this load` : 'nothing yet'],
      ['Forecast error', d.forecastErrorRatio === null ? 'not known yet' : `${percent(d.forecastErrorRatio)} of the error of assuming that the load stays as it is`],
      ['Samples', `${d.source || 'no source'}, one each ${span(d.sampleIntervalSeconds)}, the newest ${span(d.sampleAgeSeconds)} old`],
    ];
    if (d.metricsOfTarget > 1) {
      more.push(['All of this target', `${count(d.targetDesired)} replicas, by ${d.drivenBy || 'none'} of ${d.metricsOfTarget}`, d.drivenBy && metricLink(m.namespace, d.drivenBy)]);
    }
    const lines = (all) => all.map((line) => (Array.isArray(line) ? { name: line[0], text: line[1], href: line[2] } : line));
    facts(this.first, lines(first));
    facts(this.more, lines(more));
  }

  pick(at) {
    const all = this.history.at ?? [];
    const newest = all.at(-1);
    this.picked = at === null || newest === undefined || at >= newest ? null : Math.max(at, all[0]);
    this.draw();
  }

  // hover shows the time that one chart is pointed at in the others as well.
  hover(at, of) {
    for (const chart of Object.values(this.charts)) if (chart !== of) chart.hover(at, false);
  }

  // index is that of the point at the time that is looked at, -1 without points.
  index() {
    const at = this.history.at ?? [];
    if (this.picked === null) return at.length - 1;
    let i = 0;
    while (i + 1 < at.length && at[i + 1] <= this.picked) i++;
    return at.length === 0 ? -1 : i;
  }

  // current is the history with the present as its last point: points are 5 s apart, and the decision above is newer.
  current(now) {
    const d = this.detail;
    const capacity = this.history.capacity.at(-1);
    const { replicas } = d.metric;
    const values = { ...d.metric, ...d, at: now, capacity: capacity && replicas && (capacity / this.history.replicas.at(-1)) * replicas };
    return Object.fromEntries(Object.entries(this.history).map(([column, all]) => [column, [...all, values[column]]]));
  }

  draw() {
    if (!this.detail) return;
    const live = this.picked === null;
    const now = Date.parse(this.detail.time) / 1000;
    let i = this.index();
    const h = live && i >= 0 ? this.current(now) : this.history;
    if (live && i >= 0) i++;
    this.live.setAttribute('aria-pressed', String(live));
    this.slider.disabled = i < 0;
    const shown = live || i < 0;
    const reason = shown ? this.detail.metric.reason : h.reason[i];
    set(this.badge, reason);
    this.badge.classList.toggle('warn', reason === 'AtMaximum');
    set(this.message, shown ? this.detail.message : h.message[i]);
    this.decision.classList.toggle('trouble', shown ? Boolean(this.detail.metric.cause) : h.desired[i] === null);
    this.failing.hidden = !shown || !this.object?.failing.length;
    if (i < 0) {
      set(this.when, 'Recording begins; the first point comes within 5s.');
      return;
    }
    const at = h.at[i];
    this.slider.min = h.at[0];
    this.slider.max = this.history.at.at(-1);
    this.slider.value = at;
    this.slider.setAttribute('aria-valuetext', `${time(at)}, ${h.reason[i]}`);
    set(this.when, live ? `${time(at)}, now` : `${time(at)}, ${span(now - at)} ago`);

    const horizon = Math.max(60, ...h.horizonSeconds.slice(-1));
    const from = Math.min(Math.max(h.at[0], now - 3600), now - 300);
    const to = now + horizon;
    const common = { from, to, cursor: live ? null : at, now, marks: this.marks() };
    const points = (column) => h.at.map((t, j) => [t, column[j]]);
    const due = (column) => h.at.map((t, j) => [t + h.horizonSeconds[j], column[j]]);
    const total = due(h.total);
    const planned = due(h.planned);
    this.charts.total.show({
      ...common, points: { capacity: points(h.capacity), planned, total, level: points(h.level) },
      values: { capacity: h.capacity[i], planned: valueAt(planned, at, 20), total: valueAt(total, at, 20), level: h.level[i] },
    });
    this.charts.pod.show({
      ...common, points: { threshold: points(h.threshold), predicted: points(h.predictedPerPod), load: points(h.loadPerPod) },
      values: { threshold: h.threshold[i], predicted: h.predictedPerPod[i], load: h.loadPerPod[i] },
    });
    const bound = (n) => [[from, n ?? null], [to, n ?? null]];
    this.charts.replicas.show({
      ...common,
      points: { max: bound(this.object?.max), min: bound(this.object?.min), desired: points(h.desired), replicas: points(h.replicas), ready: points(h.ready) },
      values: { max: this.object?.max, min: this.object?.min, desired: h.desired[i], replicas: h.replicas[i], ready: h.ready[i] },
    });
  }

  // marks are the changes of the replicas, losses of the forecast, and Warnings.
  marks() {
    const h = this.history;
    const marks = this.events.warnings();
    for (let i = 1; i < h.at.length; i++) {
      const [before, after] = [h.replicas[i - 1], h.replicas[i]];
      if (before !== null && after !== null && before !== after) {
        marks.push({ at: h.at[i], kind: after > before ? 'up' : 'down', text: `Set from ${before} to ${after}` });
      }
      if (h.desired[i] === null && h.desired[i - 1] !== null) marks.push({ at: h.at[i], kind: 'warning', text: `Forecast lost: ${h.reason[i]}` });
    }
    return marks;
  }

  fillTable() {
    if (!this.table.open || !this.history.at) return;
    const h = this.history;
    const rows = [];
    let minute = null;
    for (let i = h.at.length - 1; i >= 0; i--) {
      if (Math.floor(h.at[i] / 60) === minute) continue;
      minute = Math.floor(h.at[i] / 60);
      rows.push([time(h.at[i]), amount(h.level[i]), amount(h.total[i]), amount(h.loadPerPod[i]), amount(h.threshold[i]), count(h.ready[i]), count(h.replicas[i]), count(h.desired[i]), h.reason[i]]);
    }
    this.rows.rows(rows);
  }
}

// late says for how much of the last day pods were too few.
function late(m) {
  if (m.lateRatio === null) return 'not known yet';
  const asked = m.lateness > 0 ? `; at most ${percent(m.lateness)} asked for` : '';
  return ofDay(m, m.lateRatio, asked);
}

// ofDay writes a share of the last day, or of the time that is known so far, which is too short to judge.
function ofDay(m, ratio, asked = '') {
  return m.lateJudged ? `${percent(ratio)} of the last day${asked}` : `${percent(ratio)} of the first ${span(m.lateKnownSeconds)}: ${tooLittle}`;
}

// set leaves the node alone if its text stays, so that what is read aloud is not read again.
function set(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
