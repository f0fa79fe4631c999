// All PredictedMetrics, a page at a time. The replica filters and sorts.
import { spark } from './chart.js';
import { amount, count, element, metricLink, percent, refill, span, tooLittle } from './dom.js';

const limit = 50;

const states = [
  ['', 'All', 'metrics'], ['unavailable', 'No forecast', 'unavailable'], ['up', 'Scaling up', 'scalingUp'],
  ['down', 'Scaling down', 'scalingDown'], ['maximum', 'At maximum', 'atMaximum'], ['late', 'Too few pods', 'late'],
];

// name, title, class, meaning; '' is a column that nothing is sorted by
const columns = [
  ['name', 'PredictedMetric', '', ''],
  ['', 'Last hour', 'optional', ''],
  ['reason', 'Decision', '', 'Why, or why there is no forecast'],
  ['load', 'Load', 'number optional', 'Load of a pod now'],
  ['predicted', 'Predicted', 'number optional', 'Load of a pod at the horizon with the present replicas'],
  ['threshold', 'Threshold', 'number optional roomy', 'What a pod may carry'],
  ['replicas', 'Replicas', 'number', 'Ready pods of the replicas that the target is set to'],
  ['desired', 'Desired', 'number', 'Replicas that the forecast needs'],
  ['late', 'Too few pods', 'number optional', 'Share of the last day in which pods were too few'],
  ['learned', 'Learned', 'number optional roomy', 'For how long the load has been learned from'],
];

const shapeValues = 60;
const shapeRest = 15000; // ms between two looks at the last hour of the rows: it changes slowly, and is most of an answer

export class Fleet {
  title = 'PredictedMetrics';

  constructor(_namespace, _name, query) {
    this.query = new URLSearchParams(query);
    this.shapes = new Map(); // by the address of the row
    this.shapesDue = 0;
    this.filters = new Map(states.map(([state, title]) => [state, element('button', {
      type: 'button', 'aria-pressed': 'false', onclick: () => this.change({ state, offset: '' }),
    }, title)]));
    this.search = element('input', {
      type: 'search', id: 'search', maxlength: 200, autocomplete: 'off', placeholder: 'Namespace, name or target', value: this.query.get('search') ?? '',
      oninput: () => {
        clearTimeout(this.typing);
        this.typing = setTimeout(() => this.change({ search: this.search.value.trim(), offset: '' }, true), 250);
      },
    });
    this.heads = new Map(columns.map(([name, title, kind, meaning]) => [name, element('th', { scope: 'col', class: kind },
      name === '' ? title : element('button', { type: 'button', title: meaning || false, onclick: () => this.sortBy(name) }, title))]));
    this.worst = element('button', { type: 'button', 'aria-pressed': 'false', onclick: () => this.change({ sort: '', order: '', offset: '' }) }, 'Trouble first');
    this.body = element('tbody');
    this.range = element('p', { class: 'soft', role: 'status' });
    this.previous = element('button', { type: 'button', onclick: () => this.turn(-limit) }, 'Previous');
    this.next = element('button', { type: 'button', onclick: () => this.turn(limit) }, 'Next');
    this.node = element('div', {},
      element('h1', {}, this.title),
      element('div', { class: 'row', role: 'group', 'aria-label': 'Show' }, ...this.filters.values()),
      element('div', { class: 'row' },
        element('div', { class: 'search' }, element('label', { class: 'hidden', for: 'search' }, 'Search'), this.search), this.worst),
      element('div', { class: 'scroll', role: 'region', 'aria-label': 'Table of PredictedMetrics', tabindex: 0 },
        element('table', { class: 'fleet' }, element('caption', { class: 'hidden' }, 'PredictedMetrics. Loads are those of a pod.'),
          element('thead', {}, element('tr', {}, ...this.heads.values())), this.body)),
      element('div', { class: 'row' }, this.previous, this.next, this.range));
    this.mark();
  }

  continues(_namespace, _name, query) {
    this.query = new URLSearchParams(query);
    this.mark();
    return true;
  }

  // mark shows the current selection.
  mark() {
    for (const [state, button] of this.filters) button.setAttribute('aria-pressed', String(state === (this.query.get('state') ?? '')));
    this.shapesDue = 0;
    const by = this.query.get('sort') ?? '';
    this.worst.setAttribute('aria-pressed', String(by === ''));
    for (const [name, head] of this.heads) {
      if (name === '') continue;
      const order = this.query.get('order') === 'desc' ? 'descending' : 'ascending';
      const sorted = name === by;
      head.setAttribute('aria-sort', sorted ? order : 'none');
      const [, title] = columns.find(([column]) => column === name);
      head.firstChild.textContent = sorted ? `${title} ${order === 'descending' ? '▼' : '▲'}` : title;
    }
    if (document.activeElement !== this.search) this.search.value = this.query.get('search') ?? '';
  }

  // change goes to another query. While it is typed, it replaces the address, so that one step back leaves the search.
  change(values, typed) {
    for (const [name, value] of Object.entries(values)) {
      if (value) this.query.set(name, value); else this.query.delete(name);
    }
    const query = this.query.toString();
    const hash = query ? `#/?${query}` : '#/';
    if (typed) location.replace(hash); else location.hash = hash;
  }

  sortBy(name) {
    const again = name === this.query.get('sort');
    const text = name === 'name' || name === 'reason';
    const descending = again ? this.query.get('order') !== 'desc' : !text;
    this.change({ sort: name, order: descending ? 'desc' : '', offset: '' });
  }

  turn(by) {
    this.change({ offset: String(Math.max(0, Number(this.query.get('offset') ?? 0) + by) || '') });
  }

  path() {
    const query = new URLSearchParams({ limit });
    for (const name of ['search', 'state', 'sort', 'order', 'offset']) {
      if (this.query.get(name)) query.set(name, this.query.get(name));
    }
    if (Date.now() >= this.shapesDue) query.set('shape', shapeValues);
    return `dashboard/v1/metrics?${query}`;
  }

  show(fleet) {
    for (const [state, title, key] of states) this.filters.get(state).textContent = `${title} ${fleet.summary[key]}`;
    for (const item of fleet.items.filter((i) => i.shape)) {
      this.shapes.set(address(item), known(item.shape));
      this.shapesDue = Date.now() + shapeRest;
    }
    refill(this.body, fleet.items.map((item) => row(item, this.shapes.get(address(item)))));
    const last = fleet.offset + fleet.items.length;
    let text = `${fleet.offset + 1}–${last} of ${fleet.matching}`;
    if (fleet.items.length === 0) text = fleet.summary.metrics === 0 ? 'There is no PredictedMetric.' : 'No PredictedMetric matches.';
    if (this.range.textContent !== text) this.range.textContent = text;
    this.previous.disabled = fleet.offset === 0;
    this.next.disabled = last >= fleet.matching;
  }
}

const address = (item) => metricLink(item.namespace, item.name);

function row(item, shape) {
  const over = (value) => (item.threshold > 0 && value !== null && value > item.threshold ? 'number optional bad' : 'number optional');
  const late = item.lateJudged && item.lateness > 0 && item.lateRatio > item.lateness;
  const broken = item.loadPerPod === null; // the cause takes the place of the loads
  const young = !item.lateJudged && item.lateRatio !== null;
  let arrow = '';
  if (item.desired !== null && item.replicas !== null) arrow = { '1': '↑ ', '-1': '↓ ', '0': '' }[Math.sign(item.desired - item.replicas)];
  return element('tr', {},
    element('th', { scope: 'row' },
      element('a', { href: address(item) }, `${item.namespace}/${item.name}`),
      element('div', { class: 'soft small' }, `${item.targetKind} ${item.targetName}`)),
    element('td', { class: 'shape' }, shape ? spark({ ...shape, label: described(shape) }) : undefined),
    element('td', { class: 'why', colspan: broken && 3 }, element('span', { class: tone(item) }, item.reason), item.dryRun ? element('span', { class: 'soft small' }, ' dry run') : undefined,
      item.cause ? element('div', { class: 'small cause', title: item.cause }, item.cause) : undefined),
    ...(broken ? [] : [
      element('td', { class: over(item.loadPerPod) }, amount(item.loadPerPod)),
      element('td', { class: over(item.predictedPerPod) }, amount(item.predictedPerPod)),
    ]),
    element('td', { class: 'number optional roomy' }, amount(item.threshold)),
    element('td', { class: 'number', 'data-head': 'Replicas' }, `${count(item.ready)} / ${count(item.replicas)}`),
    element('td', { class: 'number', 'data-head': 'Desired' }, arrow + count(item.desired)),
    element('td', { class: late ? 'number optional bad' : `number optional${young ? ' soft' : ''}`, title: young ? `${percent(item.lateRatio)} of ${span(item.lateKnownSeconds)}: ${tooLittle}` : false },
      young ? 'too little data' : percent(item.lateRatio)),
    element('td', { class: 'number optional roomy' }, item.learnedSeconds > 0 ? span(item.learnedSeconds) : '–'));
}

// tone is the class of a reason: a start, or a target without pods, is no fault.
function tone(item) {
  if (['WaitingForSamples', 'WarmingUp', 'NoReadyPods'].includes(item.reason)) return 'soft';
  return item.desired === null ? 'bad' : item.reason === 'AtMaximum' ? 'warn' : '';
}

// known is a shape from its first value on, at least five intervals, so that there is a line.
function known({ load, forecast, capacity, replicas, stepSeconds }) {
  const first = Math.max(0, Math.min(load.findIndex((v, i) => (v ?? capacity[i] ?? forecast[i]) !== null), load.length - 5));
  const rest = (values) => values.slice(first);
  return { load: rest(load), forecast: rest(forecast), capacity: rest(capacity), replicas: rest(replicas), seconds: (load.length - first) * stepSeconds };
}

// described says what a small chart shows.
function described(shape) {
  const range = (values, write) => {
    const known = values.filter((v) => v !== null);
    if (known.length === 0) return 'not known';
    const [low, high] = [Math.min(...known), Math.max(...known)].map(write);
    return low === high ? low : `${low} to ${high}`;
  };
  return `Last ${span(shape.seconds)}: load of all pods ${range(shape.load, amount)}, replicas ${range(shape.replicas, count)}`;
}
