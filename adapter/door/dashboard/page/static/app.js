// Which view is shown, and what it is fed with. The part of the address behind # names the view: #/?state=up, #/NAMESPACE/NAME,
// #workerpools, #workerpools/NAME, #pods or #pods/NAMESPACE/NAME.
import { because, element, get } from './dom.js';
import { Fleet } from './fleet.js';
import { Metric } from './metric.js';
import { Pod, Pods } from './pods.js';
import { Pool, Pools } from './pools.js';

const main = document.getElementById('main');
const status = document.getElementById('status');
const period = 2000; // ms between two looks, unless the view says otherwise
const longest = 8; // times that, where looks fail one after the other

const cluster = document.getElementById('cluster');

let view;
let timer;
let running; // the request that is under way
let pause = 1; // in periods

history.replaceState(null, '', location.pathname + location.hash); // without the token

function route() {
  const [path, query] = location.hash.replace(/^#\/?/, '').split('?');
  const names = path.split('/').map(decoded);
  const section = ['#workerpools', '#pods'].find((hash) => location.hash.split('/')[0] === hash) ?? '#/';
  const [namespace, name] = section === '#pods' ? names.slice(1) : names;
  const [all, one] = { '#/': [Fleet, Metric], '#workerpools': [Pools, Pool], '#pods': [Pods, Pod] }[section];
  const kind = name ? one : all;
  for (const link of document.querySelectorAll('nav a:not(.home)')) {
    if (link.hash === section) link.setAttribute('aria-current', 'page'); else link.removeAttribute('aria-current');
  }
  if (view && view.constructor === kind && view.continues(namespace, name, query)) {
    refresh();
    return;
  }
  pause = 1;
  const first = view === undefined;
  view?.leave?.();
  view = new kind(namespace, name, query, refresh);
  setTitle();
  main.replaceChildren(view.node);
  if (!first) {
    main.focus({ preventScroll: true }); // readers learn that the page has changed
    scrollTo(0, 0);
  }
  refresh();
}

// setTitle names the view and the cluster, so that tabs of several clusters can be distinguished.
function setTitle() {
  document.title = [view.title, cluster.textContent, 'Foresail'].filter(Boolean).join(' · ');
}

async function nameCluster() {
  try {
    const { name, server } = await get('local/v1/cluster');
    cluster.textContent = name;
    cluster.title = server;
    setTitle();
  } catch {
    // The status says that the command has ended.
  }
}

// decoded is the text itself if it is not encoded, as in a typed address.
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// refresh requests the data of the view, now and periodically.
async function refresh() {
  clearTimeout(timer);
  running?.abort();
  const request = new AbortController();
  running = request;
  const shown = view;
  try {
    shown.show(await get(shown.path(), request.signal));
    report('');
    pause = 1;
  } catch (error) {
    if (request.signal.aborted) return;
    pause = Math.min(2 * pause, longest);
    report(because(error));
    shown.fail?.(because(error));
  }
  if (running === request && document.visibilityState === 'visible') timer = setTimeout(refresh, pause * (shown.period ?? period));
}

// report changes the status only if it says something else: each change is read aloud.
function report(problem) {
  if (status.dataset.problem === problem) return;
  status.dataset.problem = problem;
  status.classList.toggle('failing', problem !== '');
  status.replaceChildren(problem === '' ? element('span', {}, 'Live') : element('span', {}, `Not up to date: ${problem}`));
}

addEventListener('hashchange', route);
document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && refresh());
route();
nameCluster();
