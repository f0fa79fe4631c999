// All PredictedMetrics, a page at a time. The replica filters and sorts.
import { amount, count, element, percent, span } from './dom.js';

const limit = 50;

const states = [
  ['', 'All', 'metrics'], ['unavailable', 'No forecast', 'unavailable'], ['up', 'Scaling up', 'scalingUp'],
  ['down', 'Scaling down', 'scalingDown'], ['maximum', 'At maximum', 'atMaximum'], ['late', 'Late', 'late'],
];

// name, title, class, meaning
const columns = [
  ['name', 'PredictedMetric', '', ''],
  ['load', 'Load', 'number', 'Load of a pod now'],
  ['predicted', 'Predicted', 'number', 'Load of a pod at the horizon with the present replicas'],
  ['threshold', 'Threshold', 'number optional', 'What a pod may carry'],
  ['replicas', 'Replicas', 'number', 'Ready pods of the replicas that the target is set to'],
  ['desired', 'Desired', 'number', 'Replicas that the forecast needs'],
  ['reason', 'Decision', '', 'Why, or why there is no forecast'],
  ['learned', 'Learned', 'number optional', 'For how long the load has been learned from'],
  ['late', 'Late', 'number optional', 'Share of the last day in which pods were too few'],
];

export class Fleet {
  title = 'PredictedMetrics';

  constructor(_namespace, _name, query) {
    this.query = new URLSearchParams(query);
    this.filters = new Map(states.map(([state, title]) => [state, element('button', {
      type: 'button', 'aria-pressed': 'false', onclick: () => this.change({ state, offset: '' }),
    }, title)]));
    this.search = element('input', {
      type: 'search', id: 'search', maxlength: 200, autocomplete: 'off', placeholder: 'Namespace, name or target', value: this.query.get('search') ?? '',
      oninput: () => {
        clearTimeout(this.typing);
        this.typing = setTimeout(() => this.change({ search: this.search.value.trim(), offset: '' }), 250);
      },
    });
    this.heads = new Map(columns.map(([name, title, kind, meaning]) => [name, element('th', { scope: 'col', class: kind },
      element('button', { type: 'button', title: meaning || false, onclick: () => this.sortBy(name) }, title))]));
    this.body = element('tbody');
    this.range = element('p', { class: 'soft', role: 'status' });
    this.previous = element('button', { type: 'button', onclick: () => this.turn(-limit) }, 'Previous');
    this.next = element('button', { type: 'button', onclick: () => this.turn(limit) }, 'Next');
    this.node = element('div', {},
      element('h1', {}, this.title),
      element('div', { class: 'row', role: 'group', 'aria-label': 'Show' }, ...this.filters.values()),
      element('div', { class: 'row' },
        element('div', { class: 'search' }, element('label', { class: 'hidden', for: 'search' }, 'Search'), this.search)),
      element('div', { class: 'scroll', role: 'region', 'aria-label': 'Table of PredictedMetrics', tabindex: 0 },
        element('table', {}, element('caption', { class: 'hidden' }, 'PredictedMetrics. Loads are those of a pod.'),
          element('thead', {}, element('tr', {}, ...this.heads.values())), this.body)),
      element('div', { class: 'row' }, this.previous, this.next, this.range));
    this.mark();
  }

  continues(_namespace, _name, query) {
    this.query = new URLSearchParams(query);
    this.mark();
    return true;
  }

  // mark shows what is asked for.
  mark() {
    for (const [state, button] of this.filters) button.setAttribute('aria-pressed', String(state === (this.query.get('state') ?? '')));
    for (const [name, head] of this.heads) {
      const order = this.query.get('order') === 'desc' ? 'descending' : 'ascending';
      const sorted = name === (this.query.get('sort') ?? 'name');
      head.setAttribute('aria-sort', sorted ? order : 'none');
      const [, title] = columns.find(([column]) => column === name);
      head.firstChild.textContent = sorted ? `${title} ${order === 'descending' ? '▼' : '▲'}` : title;
    }
    if (document.activeElement !== this.search) this.search.value = this.query.get('search') ?? '';
  }

  change(values) {
    for (const [name, value] of Object.entries(values)) {
      if (value) this.query.set(name, value); else this.query.delete(name);
    }
    const query = this.query.toString();
    location.hash = query ? `#/?${query}` : '#/';
  }

  sortBy(name) {
    const again = name === (this.query.get('sort') ?? 'name');
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
    return `dashboard/v1/metrics?${query}`;
  }

  show(fleet) {
    for (const [state, title, key] of states) this.filters.get(state).textContent = `${title} ${fleet.summary[key]}`;
    const focused = this.body.contains(document.activeElement) ? document.activeElement.getAttribute('href') : null;
    this.body.replaceChildren(...fleet.items.map(row));
    if (focused) [...this.body.querySelectorAll('a')].find((a) => a.getAttribute('href') === focused)?.focus();
    const last = fleet.offset + fleet.items.length;
    let text = `${fleet.offset + 1}–${last} of ${fleet.matching}`;
    if (fleet.items.length === 0) text = fleet.summary.metrics === 0 ? 'There is no PredictedMetric.' : 'No PredictedMetric matches.';
    if (this.range.textContent !== text) this.range.textContent = text;
    this.previous.disabled = fleet.offset === 0;
    this.next.disabled = last >= fleet.matching;
  }
}

function row(item) {
  const over = (value) => (item.threshold > 0 && value !== null && value > item.threshold ? 'number bad' : 'number');
  const late = item.lateness > 0 && item.lateRatio !== null && item.lateRatio > item.lateness;
  let arrow = '';
  if (item.desired !== null && item.replicas !== null) arrow = { '1': '↑ ', '-1': '↓ ', '0': '' }[Math.sign(item.desired - item.replicas)];
  return element('tr', {},
    element('th', { scope: 'row' },
      element('a', { href: `#/${encodeURIComponent(item.namespace)}/${encodeURIComponent(item.name)}` }, `${item.namespace}/${item.name}`),
      element('div', { class: 'soft small' }, `${item.targetKind} ${item.targetName}`)),
    element('td', { class: over(item.loadPerPod) }, amount(item.loadPerPod)),
    element('td', { class: over(item.predictedPerPod) }, amount(item.predictedPerPod)),
    element('td', { class: 'number optional' }, amount(item.threshold)),
    element('td', { class: 'number' }, `${count(item.ready)} / ${count(item.replicas)}`),
    element('td', { class: 'number' }, arrow + count(item.desired)),
    element('td', { class: item.available ? '' : 'bad' }, item.reason, item.dryRun ? element('div', { class: 'soft small' }, 'dry run') : undefined),
    element('td', { class: 'number optional' }, item.learnedSeconds > 0 ? span(item.learnedSeconds) : '–'),
    element('td', { class: late ? 'number optional bad' : 'number optional' }, percent(item.lateRatio)));
}
