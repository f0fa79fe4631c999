// What k6 does: the first rate for a lead-in, then the stages that count, each request over a connection of its own.
// Paths tell the two apart for the proxy, scenarios for the summary.
import http from 'k6/http';

const plan = JSON.parse(__ENV.PLAN);
// Users that k6 has to make while it sends cost it the time to send on time, so all are made before.
const scenario = (users, more) => Object.assign({
  timeUnit: '1s', preAllocatedVUs: users, maxVUs: users, gracefulStop: plan.timeout,
}, more);

export const options = {
  noConnectionReuse: true,
  discardResponseBodies: true,
  summaryTrendStats: ['avg', 'p(50)', 'p(90)', 'p(99)'],
  scenarios: Object.assign(
    { main: scenario(plan.users, { executor: 'ramping-arrival-rate', exec: 'main', startTime: plan.lead, startRate: plan.first, stages: plan.stages }) },
    plan.first > 0 ? { lead: scenario(200, { executor: 'constant-arrival-rate', exec: 'lead', rate: plan.first, duration: plan.lead }) } : {},
  ),
  // What a scenario came to is in the summary for the thresholds that it has. These hold always.
  thresholds: {
    'http_req_duration{scenario:main}': ['max>=0'],
    'http_req_failed{scenario:main}': ['rate>=0'],
    'dropped_iterations{scenario:main}': ['count>=0'],
  },
};

const get = (path) => http.get(plan.target + path, { timeout: plan.timeout });
export function main() { get('/main'); }
export function lead() { get('/lead'); }

export function handleSummary(data) {
  return { [plan.summary]: JSON.stringify(data) };
}
