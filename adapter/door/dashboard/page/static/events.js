// The newest Events about one object, read by the command when the view gets new data, so only while it is visible, with the
// pause that the command asks for.
import { because, changed, element, get, table, time } from './dom.js';

const date = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });

export class Events {
  // of is the object, as its resource, namespace and name.
  constructor(...of) {
    this.path = `local/v1/events/${of.map(encodeURIComponent).join('/')}`;
    this.due = 0;
    this.about = element('p', { class: 'soft' }, 'Loading …');
    this.list = table('Events, the newest first', [['Time'], ['Reason, type'], ['Message'], ['Count', 'number']]);
    this.list.node.hidden = true;
    this.node = element('section', { class: 'panel', 'aria-label': 'Events' }, element('h2', {}, 'Events'), this.about, this.list.node);
  }

  // warnings are marks for a chart.
  warnings() {
    return (this.events ?? []).filter((e) => e.type === 'Warning').map((e) => ({ at: Date.parse(e.time) / 1000, kind: 'warning', text: `${e.reason}: ${e.message}` }));
  }

  // leave ends what is under way.
  leave() { this.request?.abort(); }

  // look asks for the Events again if it is time to.
  async look() {
    if (Date.now() < this.due) return;
    this.due = Infinity; // one at a time
    const request = new AbortController();
    this.request = request;
    let rest = 5;
    try {
      const answer = await get(this.path, request.signal);
      rest = answer.restSeconds;
      this.show(answer);
    } catch (error) {
      if (request.signal.aborted) return;
      this.say(because(error));
    }
    this.due = Date.now() + 1000 * rest;
  }

  show({ problem, events, all, cut }) {
    this.events = events;
    this.say(problem ?? (cut ? `There are more than ${all}; newer ones may be missing.`
      : all > events.length ? `The newest ${events.length} of ${all}.` : all === 0 ? 'The cluster has none; it keeps them for an hour, unless it is set up otherwise.' : ''));
    this.list.node.hidden = events.length === 0;
    if (!changed(this.list.body, events)) return;
    this.list.fill(events.map((e) => this.list.row([when(Date.parse(e.time) / 1000),
      element('div', {}, e.reason, element('div', { class: e.type === 'Warning' ? 'small bad' : 'small soft' }, e.type)), e.message, String(e.count)])));
  }

  say(text) {
    this.about.hidden = text === '';
    if (this.about.textContent !== text) this.about.textContent = text;
  }
}

// when writes a time, with the day unless it is today.
function when(seconds) {
  const day = date.format(seconds * 1000);
  return day === date.format(Date.now()) ? time(seconds) : `${day}, ${time(seconds)}`;
}
