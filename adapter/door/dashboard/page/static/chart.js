// A chart of lines over time, as SVG. A box at the pointer has the time and the values; the legend has those of the selected time,
// and the page has the same as a table.
import { element, minute, svg, time } from './dom.js';

const left = 46;
const right = 8;
const top = 12;
const bottom = 20;
const height = 200;
const near = 7; // px from a mark to the pointer

export class Chart {
  // lines: [{key, label, kind, step, dots, many, bound}]. Many has the points of several pods, one after the other, and so no value at a
  // time. A bound that is far above the other lines does not flatten them. write formats a value, onpick gets the time that was clicked on, onhover that of the pointer, or null.
  constructor(title, lines, write, onpick, onhover) {
    this.lines = lines;
    this.write = write;
    this.hovered = null;
    this.picture = svg('svg', { class: 'chart', role: 'img' });
    this.values = new Map(lines.map((line) => [line.key, element('b')]));
    this.title = title;
    this.node = element('figure', { class: 'panel' },
      element('figcaption', {}, element('h2', {}, title)), this.picture,
      element('ul', { class: 'legend' }, ...lines.map((line) => element('li', {},
        svg('svg', { class: 'key', viewBox: '0 0 26 10', 'aria-hidden': 'true' }, svg('path', { class: line.kind, d: line.dots ? 'M13 5h0' : 'M1 5H25' })),
        `${line.label} `, this.values.get(line.key)))));
    const at = (event) => {
      const { from, to } = this.data;
      return Math.min(to, Math.max(from, this.scale.time(event.clientX - this.picture.getBoundingClientRect().left)));
    };
    const hover = (t) => {
      this.hover(t, true);
      onhover?.(t, this);
    };
    this.picture.addEventListener('pointerdown', (event) => {
      if (!this.scale) return;
      hover(at(event));
      onpick(at(event));
    });
    this.picture.addEventListener('pointermove', (event) => {
      if (!this.scale) return;
      hover(at(event));
      if (event.buttons) onpick(at(event));
    });
    // A finger that is lifted leaves the values in place, until it touches something else.
    this.picture.addEventListener('pointerleave', (event) => event.pointerType === 'mouse' && hover(null));
    document.addEventListener('pointerdown', (event) => this.hovered !== null && !event.target.closest?.('svg.chart') && hover(null));
    new ResizeObserver(() => this.draw()).observe(this.picture);
  }

  // show has the points [time, value or null] of each line, the span of time, the cursor, and the values there that the legend is to
  // have. Points that are farther apart than the gap, in seconds, are not joined. Marks are [{at, kind, text}].
  show(data) {
    this.data = data;
    for (const [key, node] of this.values) node.textContent = key in data.values ? this.write(data.values[key]) : '';
    this.draw();
  }

  // hover shows the values at a time, in a box if it is this chart that is pointed at.
  hover(at, boxed) {
    this.hovered = at;
    this.boxed = boxed;
    this.draw();
  }

  // ceiling is the highest value of the axis.
  ceiling() {
    let max = 0;
    const reach = (line) => { for (const [, v] of this.data.points[line.key]) if (v !== null && v > max) max = v; };
    this.lines.filter((line) => !line.bound).forEach(reach);
    const others = max;
    for (const line of this.lines.filter((l) => l.bound)) {
      if (this.data.points[line.key].every(([, v]) => v === null || v <= Math.max(4, 2.5 * others))) reach(line);
    }
    const unit = step(max);
    return [unit, Math.max(unit, Math.ceil(max / unit) * unit)];
  }

  draw() {
    const width = this.picture.clientWidth;
    if (!this.data || width < 100) return;
    const { from, to, points, cursor, now, gap = 20, marks = [] } = this.data;
    const [unit, ceiling] = this.ceiling();
    const x = (t) => left + ((t - from) / (to - from)) * (width - left - right);
    const y = (v) => height - bottom - (v / ceiling) * (height - top - bottom);
    this.scale = { time: (px) => from + ((px - left) / (width - left - right)) * (to - from) };

    const parts = [];
    for (let i = 0; i * unit <= ceiling * 1.001; i++) {
      parts.push(svg('path', { class: 'grid', d: `M${left} ${y(i * unit)}H${width - right}` }),
        svg('text', { x: left - 6, y: y(i * unit) + 4, 'text-anchor': 'end' }, this.write(i * unit)));
    }
    const every = minutesApart((to - from) / (width < 500 ? 4 : 8));
    for (let t = Math.ceil(from / every) * every; t <= to; t += every) {
      if (x(t) < left + 12 || x(t) > width - right - 12) continue;
      parts.push(svg('text', { x: x(t), y: height - 5, 'text-anchor': 'middle' }, minute(t)));
    }
    const vertical = (kind, t) => svg('path', { class: kind, d: `M${x(t)} ${top}V${height - bottom}` });
    parts.push(vertical('now', now));
    for (const line of this.lines) {
      const within = points[line.key].filter(([, v]) => v === null || v <= ceiling);
      parts.push(svg('path', { class: line.kind, d: line.dots ? dots(within, x, y) : path(within, x, y, line.bound ? Infinity : gap, line.step) }));
    }
    const shown = marks.filter((m) => m.at >= from && m.at <= to);
    for (const m of shown) parts.push(svg('path', { class: `mark ${m.kind}`, d: mark(m.kind, x(m.at)) }));
    if (this.lines.every((line) => line.bound || points[line.key].every(([, v]) => v === null))) {
      parts.push(svg('text', { x: (left + width) / 2, y: height / 2, 'text-anchor': 'middle' }, 'No values in this time'));
    }
    if (cursor !== null) parts.push(vertical('cursor', cursor));
    this.picture.setAttribute('viewBox', `0 0 ${width} ${height}`);
    this.picture.setAttribute('aria-label', `${this.title}, from ${minute(from)} to ${minute(to)}. The legend has the values at the time that is looked at.`);
    this.picture.replaceChildren(...parts);
    if (this.hovered !== null) this.point(x, width, shown, vertical);
  }

  // point draws the line of the pointer and its box.
  point(x, width, marks, vertical) {
    const at = Math.min(this.data.to, Math.max(this.data.from, this.hovered));
    this.picture.append(vertical('hover', at));
    if (!this.boxed) return;
    const gap = this.data.gap ?? 20;
    const texts = [time(at), ...this.lines.filter((line) => !line.many).map((line) => [line, valueAt(this.data.points[line.key], at, line.bound ? Infinity : gap)])
      .filter(([, v]) => v !== null).map(([line, v]) => `${line.label}: ${this.write(v)}`),
    ...marks.filter((m) => Math.abs(x(m.at) - x(at)) <= near).slice(-3).map((m) => m.text)].map((text) => (text.length > 60 ? `${text.slice(0, 59)}…` : text));
    const lines = texts.map((text, i) => svg('text', { x: 8, y: 16 + 15 * i, class: i === 0 ? 'strong' : '' }, text));
    const box = svg('rect', { rx: 4, height: 15 * texts.length + 8, width: 10 });
    const group = svg('g', { class: 'box' }, box, ...lines);
    this.picture.append(group);
    const wide = Math.max(...lines.map((line) => line.getComputedTextLength())) + 16;
    box.setAttribute('width', wide);
    const beyond = x(at) + 10 + wide > width;
    group.setAttribute('transform', `translate(${Math.max(0, beyond ? x(at) - 10 - wide : x(at) + 10)} ${top})`);
  }
}

// spark is a chart of the last hour, or of the part that is known, without axes, for a row of a list: the load, what was forecast for it, and what the replicas hold.
export function spark({ load, forecast, capacity, label }) {
  const width = 120;
  const height = 30;
  const highest = (...all) => Math.max(0, ...all.flat().filter((v) => v !== null));
  const lines = (values, max, stepped) => path(values.map((v, i) => [i, v]), (i) => 1 + (i / Math.max(1, values.length - 1)) * (width - 2),
    (v) => height - 2 - (v / (max || 1)) * (height - 4), Infinity, stepped);
  const loads = highest(load, forecast, capacity);
  return svg('svg', { class: 'spark', viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label },
    svg('title', {}, label),
    svg('path', { class: 'ready', d: lines(capacity, loads, true) }),
    svg('path', { class: 'forecast', d: lines(forecast, loads) }),
    svg('path', { class: 'load', d: lines(load, loads) }));
}

// valueAt is the value of the last point up to a time, null if that is older than the gap.
export function valueAt(points, at, gap) {
  let value = null;
  for (const [t, v] of points) {
    if (t > at) break;
    value = at - t > gap ? null : v;
  }
  return value;
}

// mark is a triangle at the top: upwards, downwards, or a diamond for a warning.
function mark(kind, x) {
  const px = x.toFixed(1);
  return { up: `M${px} 2l4 7h-8z`, down: `M${px} 9l4 -7h-8z` }[kind] ?? `M${px} 1l5 5l-5 5l-5 -5z`;
}

// step is the distance of the lines of the grid: 1, 2 or 5 times a power of ten, four or so of them.
function step(max) {
  if (!(max > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(max / 4));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= max / 4);
}

// minutesApart is the distance of labels in seconds, on whole minutes: the least, if possible, or more.
function minutesApart(least) {
  const all = [60, 120, 300, 600, 1200, 3600];
  return all.find((seconds) => seconds >= least) ?? all.at(-1);
}

function dots(points, x, y) {
  return points.map(([t, v]) => `M${x(t).toFixed(1)} ${y(v).toFixed(1)}h0`).join('');
}

// path leaves a gap where a value is unknown, or none comes for long.
function path(points, x, y, gap, stepped) {
  let d = '';
  let last = null; // the point before, unless there is a gap
  for (const [t, v] of points) {
    if (v === null) {
      last = null;
      continue;
    }
    const px = x(t).toFixed(1);
    const py = y(v).toFixed(1);
    if (last === null || t - last > gap) d += `M${px} ${py}`;
    else d += stepped ? `H${px}V${py}` : `L${px} ${py}`;
    last = t;
  }
  return d;
}
