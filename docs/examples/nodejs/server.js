'use strict';

// An HTTP server that tells each second how busy its event loop is. It needs Node.js 18.2 or later and nothing else.
//
//   GET /            answers at once
//   GET /work?ms=10  holds the event loop for 10 ms, as a synchronous call does
//   GET /readyz      whether requests are to be sent here; on the port of the metrics: /metrics

const http = require('node:http');
const { performance } = require('node:perf_hooks');

const settings = {
  host: process.env.HOST || '0.0.0.0',
  port: numberFrom('PORT', 8080, 65535),
  metricsPort: numberFrom('METRICS_PORT', 9090, 65535),
  // How long requests are still taken after SIGTERM, while the cluster learns that they should go elsewhere.
  drainMs: numberFrom('DRAIN_MS', 5000, 600000),
};
const maxWorkMs = 1000;

function numberFrom(name, otherwise, most) {
  const text = process.env[name];
  if (text === undefined || text === '') return otherwise;
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0 || value > most) {
    console.error(`${name}: ${JSON.stringify(text)}: must be a whole number from 0 to ${most}`);
    process.exit(2);
  }
  return value;
}

// What is exposed is measured once a second, not when it is read: with several readers, each would otherwise end the
// span of the others. A loop that is late measures over the longer span, and is as busy as it says.
const measured = { utilization: 0, requests: 0 };
let before = performance.eventLoopUtilization();
const measuring = setInterval(() => {
  const now = performance.eventLoopUtilization();
  measured.utilization = performance.eventLoopUtilization(now, before).utilization;
  before = now;
}, 1000);
measuring.unref();

function exposition() {
  const heap = process.memoryUsage();
  return [
    ['nodejs_eventloop_utilization', 'gauge', 'Share of the last second in which the event loop was busy.', measured.utilization],
    ['nodejs_heap_size_used_bytes', 'gauge', 'Process heap size used from Node.js in bytes.', heap.heapUsed],
    ['nodejs_heap_size_total_bytes', 'gauge', 'Process heap size from Node.js in bytes.', heap.heapTotal],
    ['http_requests_total', 'counter', 'Requests for work that were answered.', measured.requests],
  ].map(([name, type, help, value]) => `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${name} ${value}\n`).join('');
}

const nobody = new Int32Array(new SharedArrayBuffer(4));

// hold keeps the event loop for a while. It takes no CPU time, so that one machine can run many of these; to the loop,
// and to all requests that wait for it, that is no different.
function hold(ms) {
  Atomics.wait(nobody, 0, 0, ms);
}

let ready = false;

function answer(response, code, text) {
  response.writeHead(code, { 'Content-Type': 'text/plain; charset=utf-8' });
  response.end(`${text}\n`);
}

function work(url, response) {
  const text = url.searchParams.get('ms');
  const ms = Number(text);
  if (!text || !(ms >= 0 && ms <= maxWorkMs)) {
    answer(response, 400, `ms: ${JSON.stringify(text)}: must be a number from 0 to ${maxWorkMs}`);
    return;
  }
  hold(ms);
  measured.requests++;
  answer(response, 200, 'done');
}

const app = http.createServer((request, response) => {
  const url = new URL(request.url, 'http://localhost');
  switch (url.pathname) {
    case '/':
      return answer(response, 200, 'ok');
    case '/work':
      return work(url, response);
    case '/readyz':
      return ready ? answer(response, 200, 'ok') : answer(response, 503, 'shutting down');
    default:
      return answer(response, 404, 'not found');
  }
});

const metrics = http.createServer((request, response) => {
  if (request.url !== '/metrics') return answer(response, 404, 'not found');
  response.writeHead(200, { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' });
  return response.end(exposition());
});

function shutdown() {
  if (!ready) return;
  ready = false;
  setTimeout(() => {
    app.close(() => metrics.close().closeIdleConnections()); // requests under way are answered first
    app.closeIdleConnections();
  }, settings.drainMs);
}

for (const server of [app, metrics]) {
  server.on('error', (error) => {
    console.error(error.message);
    process.exit(1);
  });
}
process.on('SIGTERM', shutdown);
process.on('SIGINT', shutdown);
metrics.listen(settings.metricsPort, settings.host, () => {
  app.listen(settings.port, settings.host, () => {
    ready = true;
    console.log(`listening on ${settings.host}, ports ${settings.port} and ${settings.metricsPort}`);
  });
});
