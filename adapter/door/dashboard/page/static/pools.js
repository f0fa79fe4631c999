// Worker pools: all of them, and one. The command reads them from the cluster, in the words of foresail explain workerpool.
import { Chart, valueAt } from './chart.js';
import { count, element, facts, podCount, say, table, time } from './dom.js';
import { Events } from './events.js';

const period = 5000;
const polled = (point) => point && point.max !== null; // decisions have no bounds

export class Pools {
  constructor() {
    this.title = 'Worker pools';
    this.period = period;
    this.problem = element('p', { class: 'panel decision', hidden: true });
    this.list = table('Table of worker pools', [
      ['WorkerPool'], ['State', 'why'], ['Ready / workers', 'number'], ['Desired', 'number'], ['Min – max', 'number optional'],
      ['Pending pods', 'number optional'], ['Open action'], ['Newest decision', 'optional'],
    ]);
    this.range = element('p', { class: 'soft' });
    this.node = element('div', {}, element('h1', {}, this.title), this.problem, this.list.node, this.range);
  }

  continues() { return true; }

  path() { return 'local/v1/workerpools'; }

  show(answer) {
    say(this.problem, answer.problem);
    this.list.node.hidden = answer.pools.length === 0;
    this.list.fill(answer.pools.map((pool) => this.list.row([
      element('div', {}, element('a', { href: `#workerpools/${encodeURIComponent(pool.name)}` }, pool.name), element('div', { class: 'soft small' }, pool.provider)),
      element('div', {}, element('span', { class: pool.healthy ? '' : 'bad' }, pool.state),
        pool.cause ? element('div', { class: 'small cause', title: pool.cause }, pool.cause) : undefined),
      `${count(pool.ready)} / ${count(pool.workers)}`, count(pool.desired), `${pool.min} – ${pool.max}`, count(pool.pendingPods), pool.action ?? 'none', pool.decision ?? '–'])));
    this.range.textContent = answer.more ? `${answer.pools.length} of them: the first by name, those in trouble before the others.`
      : answer.pools.length === 0 && !answer.problem ? 'There is no WorkerPool.' : '';
  }
}

export class Pool {
  constructor(_kind, name) {
    this.name = name;
    this.title = `WorkerPool ${name}`;
    this.period = period;
    this.problem = element('p', { class: 'panel decision', hidden: true });
    this.about = element('p', { class: 'soft' });
    this.badge = element('span', { class: 'badge' });
    this.message = element('span');
    this.decision = element('section', { class: 'panel', 'aria-label': 'Decision' }, element('p', { class: 'decision' }, this.badge, this.message));
    this.now = element('dl', { class: 'wide' });
    this.chart = new Chart('Workers', [
      { key: 'max', label: 'Maximum', kind: 'bound', bound: true, step: true },
      { key: 'min', label: 'Minimum', kind: 'bound least', bound: true, step: true },
      { key: 'desired', label: 'Desired', kind: 'forecast', step: true },
      { key: 'workers', label: 'Workers', kind: 'limit', step: true },
      { key: 'ready', label: 'Ready', kind: 'ready', step: true },
    ], count, () => {}, (at) => this.pending.hover(at, false));
    this.pending = new Chart('Pending pods', [{ key: 'pendingPods', label: 'Pending pods that a node of the pool could run', kind: 'planned', step: true }],
      count, () => {}, (at) => this.chart.hover(at, false));
    this.spec = element('dl', {});
    this.signals = table('Signals', [['Signal'], ['Now', 'number'], ['Predicted', 'number'], ['In', 'number'], ['Threshold', 'number'], ['Recommends', 'number']]);
    this.action = element('p', {});
    this.steps = table('Steps of the open action', [['Node'], ['Step'], ['Placement'], ['Instance'], ['Error']]);
    this.held = element('dl', { class: 'wide' });
    this.decisions = table('Decisions, the newest first', [['Time'], ['Decision'], ['Workers'], ['Why']]);
    this.votes = table('Recommendations of the newest decision', [['Signal'], ['Workers', 'number'], ['Why']]);
    this.aboutNodes = element('p', { class: 'soft' });
    this.nodes = table('Nodes of the pool', [['Node'], ['State'], ['Zone'], ['Type'], ['Market'], ['Age', 'number'], ['Pods', 'number'], ['Why it stays']]);
    this.aboutPods = element('p', { class: 'soft' });
    this.pods = table('Pods that the scheduler finds no node for', [['Pod'], ['Waits for', 'number'], ['Why']]);
    this.events = new Events('workerpools', name);
    const part = (title, ...children) => element('section', { 'aria-label': title }, element('h2', {}, title), ...children);
    this.heldPart = part('What holds decisions back, or happens outside of the action', this.held);
    this.signalsPart = part('Signals', this.signals.node);
    this.votesPart = part('Recommendations of the newest decision', this.votes.node);
    this.actionPart = element('section', { class: 'panel', 'aria-label': 'Open action' }, element('h2', {}, 'Open action'), this.action, this.steps.node);
    this.nodes.node.classList.add('tall');
    this.parts = element('div', { hidden: true }, this.decision,
      this.actionPart,
      element('div', { class: 'pair' }, element('section', { class: 'panel', 'aria-label': 'Now' }, element('h2', {}, 'Now'), this.now),
        element('div', {}, this.chart.node, this.pending.node)),
      part('Nodes', this.aboutNodes, this.nodes.node),
      part('Pods without a node', this.aboutPods, this.pods.node),
      this.heldPart,
      part('Decisions', this.decisions.node),
      this.votesPart,
      this.signalsPart,
      this.events.node,
      element('section', { class: 'panel', 'aria-label': 'Spec' }, element('h2', {}, 'Spec'), this.spec));
    this.heldPart.className = 'panel';
    this.node = element('div', {}, element('h1', {}, this.title), this.problem, this.about, this.parts);
  }

  continues(_kind, name) { return name === this.name; }

  leave() { this.events.leave(); }

  path() { return `local/v1/workerpools/${encodeURIComponent(this.name)}`; }

  show(answer) {
    say(this.problem, answer.problem);
    this.parts.hidden = answer.pool === null;
    if (answer.pool === null) return;
    const pool = answer.pool;
    this.about.textContent = `${pool.age} old, generation ${pool.generation}`;
    facts(this.now, [...pool.now, ...(answer.cost ? [{ name: 'cost', text: answer.cost }] : []), ...(pool.action ? [] : [{ name: 'open action', text: 'none' }])]);
    facts(this.spec, pool.spec);
    this.showDecision(answer.line, pool.decisions[0]);
    this.showAction(pool.action);
    this.draw(answer);
    facts(this.held, pool.held);
    this.heldPart.hidden = pool.held.length === 0;
    this.decisions.rows(pool.decisions.map((d) => [d.when, `${d.step} ${d.reason}`, d.change,
      d.recommendations ? `${d.message} (${d.recommendations})` : d.message]), 'No decision yet.');
    this.votesPart.hidden = pool.recommendations.length === 0;
    this.votes.rows(pool.recommendations.map((v) => [v.signal, v.workers, v.reason]));
    this.signalsPart.hidden = pool.signals.length === 0;
    this.signals.fill(pool.signals.map((s) => (s.error
      ? element('tr', {}, element('th', { scope: 'row' }, s.name), element('td', { colspan: 5, class: 'bad' }, s.error))
      : this.signals.row([s.name, s.current, s.predicted, s.horizon, s.threshold, s.recommended]))));
    this.showNodes(answer);
    this.events.look();
  }

  // showDecision shows the newest decision, or why the pool cannot act.
  showDecision(line, newest) {
    const broken = Boolean(line.cause);
    this.decision.classList.toggle('trouble', broken);
    this.decision.hidden = !broken && !newest;
    this.badge.textContent = broken ? line.state : newest?.reason ?? '';
    this.message.textContent = broken ? line.cause : newest?.message ?? '';
  }

  draw({ time: read, history: all }) {
    const now = Date.parse(read) / 1000;
    const gap = 60; // between two polls of the page; earlier decisions are further apart
    const history = all.flatMap((p, i) => (polled(all[i - 1]) && p.at - all[i - 1].at > gap ? [{ at: all[i - 1].at + 10, desired: null }, p] : [p]));
    const common = { from: Math.min(history[0]?.at ?? now, now - 300), to: now, cursor: null, now, marks: this.marks(history) };
    const show = (chart, keys, joined) => {
      const points = Object.fromEntries(keys.map((key) => [key, history.map((p) => [p.at, p[key] ?? null])]));
      for (const key of keys.filter((k) => k === 'min' || k === 'max')) { // decisions do not have them
        const known = points[key].find(([, v]) => v !== null)?.[1] ?? null;
        points[key] = points[key].map(([t, v]) => [t, v ?? known]);
      }
      chart.show({ ...common, gap: joined, points, values: Object.fromEntries(keys.map((key) => [key, valueAt(points[key], now, gap)])) });
    };
    show(this.chart, ['max', 'min', 'desired', 'workers', 'ready'], Infinity);
    this.pending.node.hidden = !history.some((p) => p.pendingPods > 0);
    show(this.pending, ['pendingPods'], gap);
  }

  // marks are the changes of the desired count, and Warnings.
  marks(history) {
    const marks = this.events.warnings();
    for (let i = 1; i < history.length; i++) {
      const [before, after] = [history[i - 1].desired, history[i].desired];
      if (before !== null && after !== null && before !== after) marks.push({ at: history[i].at, kind: after > before ? 'up' : 'down', text: `Desired from ${before} to ${after}` });
    }
    return marks;
  }

  showAction(action) {
    this.actionPart.hidden = action === null;
    if (action === null) return;
    this.action.textContent = [action.title, action.removes && `removes ${action.removes}, in this order`, action.progress, action.reason].filter(Boolean).join(': ');
    this.steps.node.hidden = !action.steps;
    this.steps.rows((action.steps ?? []).map((s) => [s.of, s.state, s.placement, s.instance, s.error]));
  }

  showNodes(answer) {
    const { nodes, nodesError, pods, unschedulable } = answer.pool;
    const read = `as of ${time(Date.parse(answer.nodesAt) / 1000)}`;
    this.aboutNodes.textContent = nodesError ? `They are not known: ${nodesError}`
      : `${answer.allNodes} nodes, ${read}${nodes.length < answer.allNodes ? `; the first ${nodes.length} by name` : ''}`;
    this.nodes.node.hidden = nodes.length === 0;
    this.nodes.rows(nodes.map((n) => [n.name, n.state, n.zone ?? '–', n.instanceType ?? '–', n.market ?? '–', n.age, n.pods, n.blocked ?? '']));
    this.aboutPods.textContent = unschedulable === null ? 'They are not known.' : unschedulable === 0 ? `There is none, ${read}.`
      : `The scheduler finds no node for ${podCount(unschedulable)} of the cluster, ${read}${pods.length < unschedulable ? `; these have waited for longest` : ''}. `
        + 'The recommendation "pending" names those that no node of this pool could run.';
    this.pods.node.hidden = pods.length === 0;
    this.pods.rows(pods.map((p) => [{ text: p.name, href: `#pods/${p.name}` }, p.age, p.reason]));
  }
}
