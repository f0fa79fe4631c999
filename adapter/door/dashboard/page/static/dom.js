// Elements and texts. All text from the cluster becomes text nodes, never markup.

export function element(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', name), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) {
      node.addEventListener(name.slice(2), value);
    } else if (value !== undefined && value !== false) {
      node.setAttribute(name, value === true ? '' : value);
    }
  }
  node.append(...children.filter((child) => child !== undefined));
  return node;
}

// get returns what a path answers. Its error, in the words of because, says why there is no answer.
export async function get(path, signal) {
  const response = await fetch(path, { signal });
  if (!response.ok) throw new Error((await response.text()).trim() || response.statusText);
  return response.json();
}

export const because = (error) => (error instanceof TypeError ? 'foresail dashboard has ended, or does not answer.' : error.message);

const shown = new WeakMap();

// changed returns whether a node shows other values so far, and notes these. What stays is left alone, and so is a selection in it.
export function changed(node, values) {
  const text = JSON.stringify(values);
  if (shown.get(node) === text) return false;
  shown.set(node, text);
  return true;
}

// say shows why something is not shown, if there is a reason.
export function say(node, problem) {
  node.hidden = !problem;
  if (node.textContent !== (problem ?? '')) node.textContent = problem ?? '';
}

// facts fills a description list with names and texts, or links.
export function facts(list, all) {
  if (changed(list, all)) list.replaceChildren(...all.map((fact) => element('div', {}, element('dt', {}, fact.name), element('dd', { class: fact.soft && 'soft' }, link(fact.href ? fact : fact.text)))));
}

// metricLink and podLink are addresses of views.
export const metricLink = (namespace, name) => `#/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
export const podLink = (namespace, name) => `#pods/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;

// tooLittle follows a share of a time that is too short to judge by.
export const tooLittle = 'too little data, it takes 1h';

// link is a text or a link.
const link = (cell) => (cell?.href === undefined ? cell : element('a', { href: cell.href }, cell.text));

// refill replaces the rows of a table. A link keeps the focus.
export function refill(body, rows) {
  const focused = body.contains(document.activeElement) ? document.activeElement.getAttribute('href') : null;
  body.replaceChildren(...rows);
  if (focused) [...body.querySelectorAll('a')].find((a) => a.getAttribute('href') === focused)?.focus();
}

// table has a heading for each of [title, class], and a name for screen readers. It scrolls sideways on its own; on a phone each
// row is a list, with the headings next to the cells.
export function table(name, heads) {
  const body = element('tbody');
  const row = (cells) => element('tr', {}, ...cells.map((cell, i) => (i === 0
    ? element('th', { scope: 'row' }, link(cell)) : element('td', { class: heads[i][1] ?? '' }, link(cell)))));
  const fill = (rows) => {
    for (const row of rows) if (row.cells.length === heads.length) [...row.cells].forEach((cell, i) => { cell.dataset.head = heads[i][0]; });
    refill(body, rows);
  };
  return {
    body, row, fill,
    rows: (all, none) => changed(body, all) && fill(all.length === 0 && none ? [element('tr', {}, element('td', { colspan: heads.length }, none))] : all.map(row)),
    node: element('div', { class: 'scroll stack', role: 'region', 'aria-label': name, tabindex: 0 }, element('table', {},
      element('caption', { class: 'hidden' }, name),
      element('thead', {}, element('tr', {}, ...heads.map(([title, kind]) => element('th', { scope: 'col', class: kind ?? '' }, title)))), body)),
  };
}

// amount writes a load with three significant digits, unknown as a dash.
export function amount(value) {
  if (value === null || value === undefined) return '–';
  const size = Math.abs(value);
  for (const [unit, suffix] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e4, 'k']]) {
    if (size >= unit) return `${digits(value / (suffix === 'k' ? 1e3 : unit))}${suffix}`;
  }
  return digits(value);
}

const digits = (value) => String(Math.abs(value) >= 1000 ? Math.round(value) : Number(value.toPrecision(3)));

export const count = (value) => (value === null || value === undefined ? '–' : String(value));
export const podCount = (n) => (n === 1 ? '1 pod' : `${n} pods`);

export function percent(ratio) {
  return ratio === null || ratio === undefined ? '–' : `${(100 * ratio).toFixed(ratio < 0.1 ? 1 : 0)}%`;
}

// span writes seconds as people do.
export function span(seconds) {
  if (seconds === null || seconds === undefined) return '–';
  if (seconds < 10) return `${Number(seconds.toPrecision(2))}s`;
  for (const [unit, letter] of [[86400, 'd'], [3600, 'h'], [60, 'm']]) {
    if (seconds >= 2 * unit) return `${Math.floor(seconds / unit)}${letter}`;
  }
  return `${Math.round(seconds)}s`;
}

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const minutes = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });

// time writes seconds since 1970 in the zone of the browser.
export const time = (seconds) => clock.format(seconds * 1000);
export const minute = (seconds) => minutes.format(seconds * 1000);
