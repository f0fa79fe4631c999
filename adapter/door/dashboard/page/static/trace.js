// How the newest forecast of a PredictedMetric was computed, stage by stage, while the view is open.
import { Chart } from './chart.js';
import { amount, because, changed, count, element, facts, get, podLink, span, table, time } from './dom.js';

export class Trace {
  constructor(namespace, name) {
    this.path = `dashboard/v1/metrics/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}/trace`;
    this.state = element('p', { class: 'soft', role: 'status' });
    this.parts = element('div', { hidden: true });
    this.node = element('details', { class: 'panel', ontoggle: () => this.toggle() },
      element('summary', {}, 'How this forecast came about'), this.state, this.parts);
  }

  // leave ends what is under way.
  leave() {
    this.request?.abort();
    this.request = undefined;
  }

  toggle() {
    this.leave();
    if (!this.node.open) return;
    if (!this.pods) this.build();
    this.look();
  }

  build() {
    const none = () => {};
    this.pods = new Chart('1, 2: samples of pods, aligned and imputed', [
      { key: 'imputed', label: 'Imputed', kind: 'imputed', many: true },
      { key: 'aligned', label: 'Aligned', kind: 'aligned', many: true },
      { key: 'samples', label: 'Samples', kind: 'sample', dots: true, many: true },
    ], amount, none);
    this.load = new Chart('3, 4, 5: load of all pods, forecast and decision', [
      { key: 'capacity', label: 'Capacity of the desired replicas', kind: 'limit' },
      { key: 'sum', label: 'Sum of all pods', kind: 'ready' },
      { key: 'planned', label: 'Planned for, with the margin', kind: 'planned band' },
      { key: 'total', label: 'Forecast', kind: 'forecast' },
      { key: 'load', label: 'Load', kind: 'load' },
    ], amount, none);
    this.numbers = element('dl', {});
    this.list = table('Pods of the forecast', [['Pod'], ['Samples', 'number'], ['Newest', 'number'], ['Its age', 'number'], ['Aligned', 'number'], ['Imputed', 'number']]);
    this.parts.append(this.pods.node, this.load.node, this.numbers, element('h2', {}, 'Pods'), this.list.node);
  }

  // look asks for the newest forecast, if it is shown. The view looks when it gets new data.
  async look() {
    if (!this.node.open || this.request) return; // one at a time
    const request = new AbortController();
    this.request = request;
    try {
      this.show((await get(this.path, request.signal)).forecast);
    } catch (error) {
      if (request.signal.aborted) return;
      this.lose(because(error));
    }
    this.request = undefined;
  }

  // lose takes away what is not known any more.
  lose(problem) {
    this.parts.hidden = true;
    this.say(`Not known: ${problem}`);
  }

  say(text) {
    if (this.state.textContent !== text) this.state.textContent = text;
  }

  show(forecast) {
    this.parts.hidden = forecast === null;
    if (forecast === null) {
      this.say('There is no forecast now, or it is not traced yet.');
      return;
    }
    const whole = forecast.pods.length === 1 && forecast.pods[0].name === '';
    const shown = whole || forecast.pods.length === forecast.allPods ? '' : ` The chart shows ${forecast.pods.length} of ${forecast.allPods} pods; the sum is that of all.`;
    this.say(`The window of the newest forecast, read every 2 s.${shown}`);
    const due = forecast.at + forecast.horizonSeconds;
    const tick = (k) => forecast.first + k * forecast.stepSeconds;
    const common = { from: forecast.first, to: due, cursor: null, now: forecast.at, gap: 2 * forecast.stepSeconds };
    const newest = (values) => values.findLast((v) => v !== null) ?? null;
    const lines = linesOf(forecast.pods, tick);
    this.pods.show({ ...common, to: Math.max(forecast.at, tick(forecast.load.length - 1)), points: lines, values: {} });
    this.load.show({
      ...common, gap: Infinity,
      points: {
        sum: forecast.sum.map((v, k) => [tick(k), v]), load: forecast.load.map((v, k) => [tick(k), v]),
        total: [[forecast.tick, forecast.level], [due, forecast.total]], planned: [[forecast.tick, forecast.level], [due, forecast.planned]],
        capacity: [[forecast.at, forecast.capacity], [due, forecast.capacity]],
      },
      values: { sum: newest(forecast.sum), load: newest(forecast.load), total: forecast.total, planned: forecast.planned, capacity: forecast.capacity },
    });
    facts(this.numbers, numbersOf(forecast).map(([name, text]) => ({ name, text })));
    const rows = forecast.pods.map((pod) => row(this.namespace, pod, forecast));
    if (changed(this.list.body, rows)) this.list.fill(rows.map(this.list.row));
  }
}

// linesOf has the points of all pods one after the other, with a gap between two.
function linesOf(pods, tick) {
  const samples = [];
  const aligned = [];
  const imputed = [];
  for (const pod of pods) {
    pod.sampledAt.forEach((t, k) => samples.push([t, pod.samples[k]]));
    pod.values.forEach((v, k) => {
      const measured = k >= pod.alignedFrom && k < pod.alignedTo;
      aligned.push([tick(k), measured ? v : null]);
      // With the adjacent measured one, so that the lines touch.
      imputed.push([tick(k), measured && k !== pod.alignedFrom && k !== pod.alignedTo - 1 ? null : v]);
    });
    aligned.push([tick(0), null]);
    imputed.push([tick(0), null]);
  }
  return { samples, aligned, imputed };
}

function numbersOf(f) {
  const perMinute = f.trendPerSecond === null ? null : 60 * f.trendPerSecond;
  const clipped = f.clipped.filter(Boolean).length;
  const numbers = [
    ['Window', `${time(f.first)} to ${time(f.tick)}, a value each ${span(f.stepSeconds)}`],
    ['Level', `${amount(f.level)}: the load now, smoothed`],
    ['Trend', perMinute === null ? 'not known' : `${perMinute < 0 ? '−' : '+'}${amount(Math.abs(perMinute))} a minute`],
    ['Forecast', `${amount(f.total)} in ${span(f.horizonSeconds)}`],
    ['Planned for', `${amount(f.planned)}, with the margin: ${count(f.desired)} replicas before cooldowns, which hold ${amount(f.capacity)} at the threshold`],
  ];
  if (clipped > 0) numbers.push(['Saturated', `at ${clipped} of ${f.clipped.length} values: the load was at least that`]);
  if (f.droppedSamples > 0) numbers.push(['Dropped', `${f.droppedSamples} samples that were no numbers, out of range or of the future`]);
  return numbers;
}

function row(namespace, pod, forecast) {
  const there = pod.values.filter((v) => v !== null).length;
  const aligned = pod.alignedTo - pod.alignedFrom;
  const age = pod.sampledAt.length > 0 ? Math.max(0, forecast.at - pod.sampledAt.at(-1)) : null;
  return [pod.name ? { text: pod.name, href: podLink(namespace, pod.name) } : 'the target as a whole', count(pod.samples.length), amount(pod.samples.at(-1)), span(age), count(aligned), count(there - aligned)];
}
