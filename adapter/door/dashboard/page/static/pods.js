// Pods: those without a node, and one as the scheduler extender sees it. The command asks the cluster and all replicas of the extender,
// in the words of foresail explain pod.
import { changed, count, element, facts, podCount, podLink, say, table, time } from './dom.js';

const period = 10000; // each answer is one of all replicas

// form asks for a pod by its name. Again is called if it is the one that is shown.
function form(value, again) {
  const input = element('input', {
    type: 'search', id: 'pod', required: true, maxlength: 400, autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false', value,
    placeholder: 'NAMESPACE/POD', pattern: '\\s*[^\\s\\/]+\\/[^\\s\\/]+\\s*', title: 'NAMESPACE/POD, such as shop/checkout-7d9c5',
  });
  const submit = (event) => {
    event.preventDefault();
    const hash = podLink(...input.value.trim().split('/'));
    if (location.hash === hash) again(); else location.hash = hash;
  };
  return element('form', { class: 'row', role: 'search', 'aria-label': 'Pod', onsubmit: submit },
    element('label', { class: 'search', for: 'pod' }, element('span', {}, 'Pod'), input), element('button', { type: 'submit' }, 'Explain'));
}

export class Pods {
  constructor(_namespace, _name, _query, refresh) {
    this.title = 'Pods';
    this.period = period;
    this.problem = element('p', { class: 'panel decision', hidden: true });
    this.about = element('p', { class: 'soft' });
    this.list = table('Pods that are not bound to a node', [['Pod'], ['Age', 'number'], ['Why']]);
    this.node = element('div', {}, element('h1', {}, this.title),
      element('p', { class: 'soft' }, 'Which nodes the scheduler extender filtered for a pod and why, and how it scored the others.'),
      form('', refresh),
      element('section', { 'aria-label': 'Pods without a node' }, element('h2', {}, 'Pods without a node'), this.problem, this.about, this.list.node));
  }

  continues() { return true; }

  path() { return 'local/v1/pods'; }

  show(answer) {
    say(this.problem, answer.problem);
    const { pods } = answer;
    this.list.node.hidden = pods.length === 0;
    this.list.rows(pods.map((p) => [{ text: `${p.namespace}/${p.name}`, href: podLink(p.namespace, p.name) }, p.age, p.message]));
    const some = pods.length === 0 ? 'There is none' : answer.more ? `The first ${pods.length} by name` : podCount(pods.length);
    say(this.about, answer.problem ? '' : `${some}, as of ${time(Date.parse(answer.time) / 1000)}. The oldest are first.`);
  }
}

export class Pod {
  constructor(namespace, name, _query, refresh) {
    this.namespace = namespace;
    this.name = name;
    this.title = `Pod ${namespace}/${name}`;
    this.period = period;
    this.asking = element('p', { class: 'soft' }, 'Asking the replicas of the extender …');
    this.problem = element('p', { class: 'panel decision lines', hidden: true });
    this.sentence = element('p', { class: 'panel decision', hidden: true });
    this.another = element('p', { class: 'bad', hidden: true });
    this.decisions = element('dl', { class: 'wide' });
    this.filtered = table('Reasons for which nodes were filtered', [['Filtered for'], ['Nodes', 'number'], ['Such as']]);
    this.about = element('p', { class: 'soft' });
    this.nodes = table('Nodes', [['Node'], ['Verdict'], ['Score', 'number'], ['Why'], ['CPU', 'number'], ['Memory', 'number'], ['U', 'number optional']]);
    this.missing = element('ul', {});
    const part = (title, ...children) => element('section', { 'aria-label': title }, element('h2', {}, title), ...children);
    this.filteredPart = part('Filtered nodes', this.filtered.node);
    this.missingPart = element('section', { class: 'panel', 'aria-label': 'Replicas that could not be asked', hidden: true },
      element('h2', {}, 'Replicas that could not be asked'), this.missing);
    this.parts = element('div', { hidden: true },
      element('section', { class: 'panel', 'aria-label': 'Decisions' }, element('h2', {}, 'Decisions'), this.decisions),
      this.filteredPart,
      part('Nodes', this.about, this.nodes.node, element('p', { class: 'soft small' },
        'CPU in cores, and memory: what is predicted + what assumed pods will use beyond the newest sample + what this pod counts as, of what can be allocated. '
        + 'Requests stand in parentheses where nothing is predicted. U is the larger share of the two. All figures are as of the decision. '
        + 'The scheduler adds scores of its own plugins to these.')));
    this.node = element('div', {}, element('h1', {}, this.title), form(`${namespace}/${name}`, refresh),
      this.asking, this.problem, this.sentence, this.another, this.missingPart, this.parts);
  }

  continues(namespace, name) { return namespace === this.namespace && name === this.name; }

  path() { return `local/v1/pods/${encodeURIComponent(this.namespace)}/${encodeURIComponent(this.name)}`; }

  show(answer) {
    this.asking.hidden = true;
    say(this.problem, answer.problem);
    say(this.sentence, answer.sentence);
    say(this.another, answer.another);
    this.missingPart.hidden = answer.missing.length === 0;
    if (changed(this.missing, answer.missing)) this.missing.replaceChildren(...answer.missing.map((text) => element('li', {}, text)));
    this.parts.hidden = answer.facts.length === 0;
    facts(this.decisions, answer.facts);
    this.filteredPart.hidden = answer.filteredFor.length === 0;
    this.filtered.rows(answer.filteredFor.map((r) => [r.reason, count(r.nodes), r.suchAs]));
    this.about.textContent = answer.aboutNodes;
    if (changed(this.nodes.body, answer.nodes)) this.nodes.fill(answer.nodes.map((n) => this.nodes.row(cells(n))));
  }
}

function cells(node) {
  const sum = (of) => `${of.predicted} + ${of.assumed} + ${of.pod} of ${of.allocatable}`;
  return [
    element('div', {}, node.name, node.here ? element('div', { class: 'small' }, element('b', {}, 'The pod went here')) : undefined),
    element('span', { class: node.filtered ? 'bad' : '' }, node.verdict), count(node.score), node.message, sum(node.cpu), sum(node.memory), node.used ?? '–'];
}
