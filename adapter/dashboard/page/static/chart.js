// A chart of lines over time, as SVG. The legend shows the values at the cursor; the page has the same as a table.
import { element, minute, svg } from './dom.js';

const left = 46;
const right = 8;
const top = 8;
const bottom = 20;
const height = 200;

export class Chart {
  // lines: [{key, label, kind, step, dots}]; write formats a value; onpick gets the time that was pointed at.
  constructor(title, lines, write, onpick) {
    this.lines = lines;
    this.write = write;
    this.picture = svg('svg', { class: 'chart', role: 'img' });
    this.values = new Map(lines.map((line) => [line.key, element('b')]));
    this.title = title;
    this.node = element('figure', { class: 'panel' },
      element('figcaption', {}, element('h2', {}, title)), this.picture,
      element('ul', { class: 'legend' }, ...lines.map((line) => element('li', {},
        svg('svg', { class: 'key', viewBox: '0 0 26 10', 'aria-hidden': 'true' }, svg('path', { class: line.kind, d: line.dots ? 'M13 5h0' : 'M1 5H25' })),
        `${line.label} `, this.values.get(line.key)))));
    const pick = (event) => {
      if (!this.scale || (event.type === 'pointermove' && event.pointerType !== 'mouse' && event.buttons === 0)) return;
      onpick(this.scale.time(event.clientX - this.picture.getBoundingClientRect().left));
    };
    this.picture.addEventListener('pointerdown', pick);
    this.picture.addEventListener('pointermove', (event) => event.buttons && pick(event));
    new ResizeObserver(() => this.draw()).observe(this.picture);
  }

  // show has the points [time, value or null] of each line, the span of time, the cursor, and the values there that the legend is to
  // have. Points that are farther apart than the gap, in seconds, are not joined.
  show(data) {
    this.data = data;
    for (const [key, node] of this.values) node.textContent = key in data.values ? this.write(data.values[key]) : '';
    this.draw();
  }

  draw() {
    const width = this.picture.clientWidth;
    if (!this.data || width < 100) return;
    const { from, to, points, cursor, now, gap = 20 } = this.data;
    let max = 0;
    for (const line of this.lines) for (const [, v] of points[line.key]) if (v !== null && v > max) max = v;
    const unit = step(max);
    const ceiling = Math.max(unit, Math.ceil(max / unit) * unit);
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
    parts.push(svg('path', { class: 'now', d: `M${x(now)} ${top}V${height - bottom}` }));
    for (const line of this.lines) parts.push(svg('path', { class: line.kind, d: line.dots ? dots(points[line.key], x, y) : path(points[line.key], x, y, gap, line.step) }));
    if (cursor !== null) parts.push(svg('path', { class: 'cursor', d: `M${x(cursor)} ${top}V${height - bottom}` }));
    this.picture.setAttribute('viewBox', `0 0 ${width} ${height}`);
    this.picture.setAttribute('aria-label', `${this.title}, from ${minute(from)} to ${minute(to)}. The table below has the values.`);
    this.picture.replaceChildren(...parts);
  }
}

// step is the distance of the lines of the grid: 1, 2 or 5 times a power of ten, four or so of them.
function step(max) {
  if (!(max > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(max / 4));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= max / 4);
}

// minutesApart is how many seconds labels are apart, on whole minutes: at least so many, if there is such a number.
function minutesApart(least) {
  const all = [60, 120, 300, 600, 1200, 3600];
  return all.find((seconds) => seconds >= least) ?? all.at(-1);
}

function dots(points, x, y) {
  return points.map(([t, v]) => `M${x(t).toFixed(1)} ${y(v).toFixed(1)}h0`).join('');
}

// path leaves a gap where a value is unknown, and where there is none for long.
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

