// What if: the recorded hour of a PredictedMetric, played again by the command with other values.
import { Chart } from './chart.js';
import { because, count, element, get, table, time } from './dom.js';

const fields = [
  ['threshold', 'Threshold', 'what a pod may carry'],
  ['minReplicas', 'minReplicas', ''],
  ['maxReplicas', 'maxReplicas', 'empty: no limit'],
  ['startupTime', 'Startup time', 'of a pod, such as 25s'],
  ['lateness', 'Lateness', 'such as 1%'],
];

const runs = {
  recorded: ['Recorded', 'limit'],
  'foresail-total': ['Foresail, with these values', 'load'],
  keda: ['HPA or KEDA', 'forecast'],
  clairvoyant: ['Best possible', 'planned'],
};

export class WhatIf {
  constructor(namespace, name) {
    this.path = `local/v1/whatif/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
    this.inputs = new Map(fields.map(([key]) => [key, element('input', { id: `whatif-${key}`, name: key, maxlength: 32, autocomplete: 'off', size: 8 })]));
    this.button = element('button', { type: 'submit' }, 'Play');
    this.state = element('p', { class: 'soft lines', role: 'status' });
    this.result = element('div', {});
    this.form = element('form', { class: 'row', 'aria-label': 'What if', onsubmit: (event) => { event.preventDefault(); this.play(); } },
      ...fields.map(([key, label, hint]) => element('label', { for: `whatif-${key}` }, element('span', {}, label), this.inputs.get(key),
        element('span', { class: 'soft small' }, hint))), this.button);
    this.node = element('details', { class: 'panel', ontoggle: () => this.open() },
      element('summary', {}, 'What if: play the recorded hour with other values'), this.form, this.state, this.result);
  }

  // leave ends what is under way.
  leave() { this.request?.abort(); }

  async open() {
    if (!this.node.open || this.filled) return;
    const answer = await this.ask('');
    if (!answer) return;
    this.filled = true;
    for (const [key, input] of this.inputs) input.value = answer.values[key] ?? '';
    this.say([answer.problem, answer.note]);
  }

  async play() {
    this.say(['Playing …']);
    this.button.disabled = true; // one at a time
    const answer = await this.ask(`?${new URLSearchParams([...this.inputs].map(([key, input]) => [key, input.value]))}`);
    this.button.disabled = false;
    if (!answer) return;
    this.result.replaceChildren(...(answer.result ? this.show(answer.result) : []));
    this.say([answer.problem, answer.note, answer.result && summary(answer.result)]);
  }

  // ask returns an answer, or undefined if the view no longer waits for it, or there is none.
  async ask(query) {
    this.request?.abort();
    const request = new AbortController();
    this.request = request;
    try {
      return await get(this.path + query, request.signal);
    } catch (error) {
      if (!request.signal.aborted) this.say([because(error)]);
      return undefined;
    }
  }

  say(parts) { this.state.textContent = parts.filter(Boolean).join('\n'); }

  show(result) {
    const from = Date.parse(result.from) / 1000;
    const to = Date.parse(result.to) / 1000;
    const at = (i) => from + i * result.stepSeconds;
    const figures = table('Figures of the runs', [['Scaler'], ['Minutes above the threshold', 'number'], ['Pod-hours', 'number']]);
    figures.rows(result.runs.map((run) => [runs[run.name][0], run.aboveThresholdMinutes.toFixed(1), run.podHours.toFixed(2)]));
    const replicas = (run) => run.replicas.map((n) => (n < 0 ? null : n));
    const lines = new Map(result.runs.map((run) => [run.name, replicas(run)]));
    const draw = (cursor) => {
      const i = cursor === null ? -1 : Math.max(0, Math.round((cursor - from) / result.stepSeconds));
      chart.show({
        from, to, now: to, cursor: cursor === null ? null : at(i),
        points: Object.fromEntries([...lines].map(([name, values]) => [name, values.map((n, j) => [at(j), n])])),
        values: Object.fromEntries([...lines].map(([name, values]) => [name, i < 0 ? values.at(-1) : values[i]])),
      });
    };
    const chart = new Chart('Replicas, as recorded and as played', result.runs.map((run) => (
      { key: run.name, label: runs[run.name][0], kind: runs[run.name][1], step: true })), count, (t) => draw(Math.min(to, Math.max(from, t))));
    draw(null);
    const each = Math.round(60 / result.stepSeconds);
    const minutes = table('Replicas at each minute', [['Time'], ...result.runs.map((run) => [runs[run.name][0], 'number'])]);
    const rows = [];
    for (let i = 0; at(i) <= to; i += each) rows.push([time(at(i)), ...result.runs.map((run) => count(lines.get(run.name)[i] ?? null))]);
    minutes.rows(rows);
    return [
      figures.node, chart.node,
      element('details', {}, element('summary', {}, 'Replicas at each minute'), minutes.node),
      element('h2', {}, 'What is assumed'),
      element('ul', { class: 'small' }, ...result.assumed.map((text) => element('li', {}, text))),
    ];
  }
}

function summary(result) {
  const minutes = Math.round((Date.parse(result.to) - Date.parse(result.from)) / 60000);
  const which = `Played: ${minutes} minutes from ${time(Date.parse(result.from) / 1000)} on`;
  return result.gaps ? `${which}, the longest part of the record without a gap.` : `${which}.`;
}
