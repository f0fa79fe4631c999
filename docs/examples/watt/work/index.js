'use strict';

// An application of Watt that reports each second how busy its event loop is.
//
//   GET /work?ms=10  computes for 10 ms

const http = require('node:http');
const { performance } = require('node:perf_hooks');

const maxWorkMs = 1000;

// Watt's own nodejs_eventloop_utilization covers the time since anybody read it: two replicas of Foresail and a Prometheus
// cut each other's spans short. This one is measured on a timer. Watt adds the labels applicationId and workerId.
function measureEventLoop({ client, registry }) {
  const utilization = new client.Gauge({
    name: 'eventloop_utilization',
    help: 'Share of the last second in which the event loop was busy.',
    registers: [registry],
  });
  let before = performance.eventLoopUtilization();
  setInterval(() => {
    const now = performance.eventLoopUtilization();
    utilization.set(performance.eventLoopUtilization(now, before).utilization);
    before = now;
  }, 1000).unref();
}

function work(url, response) {
  const text = url.searchParams.get('ms');
  const ms = Number(text);
  if (!text || !(ms >= 0 && ms <= maxWorkMs)) {
    response.writeHead(400, { 'Content-Type': 'text/plain; charset=utf-8' });
    response.end(`ms: ${JSON.stringify(text)}: must be a number from 0 to ${maxWorkMs}\n`);
    return;
  }
  const end = performance.now() + ms;
  while (performance.now() < end);
  response.end('done\n');
}

// build is what Watt calls for the server of an application.
module.exports.build = async () => {
  measureEventLoop(globalThis.platformatic.prometheus);
  return http.createServer((request, response) => {
    const url = new URL(request.url, 'http://localhost');
    if (url.pathname === '/work') return work(url, response);
    response.writeHead(url.pathname === '/' ? 200 : 404);
    return response.end();
  });
};
