// A worker in plain JavaScript, without packages: FAIRLANE_URL=http://127.0.0.1:8000 node worker.mjs
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

const handlers = {
  add: async ({ a, b }) => {
    if (typeof a !== 'number') throw new TypeError('a is not a number')
    return a + b
  },
  nap: async ({ seconds }, signal) => sleep(seconds * 1000, 'rested', { signal }),
  divide: async ({ a, b }) => {
    if (b === 0) throw Object.assign(new Error('b is zero'), { code: 'DIVISION', retriable: false })
    return { quotient: a / b }
  },
}
const url = process.env.FAIRLANE_URL ?? 'http://127.0.0.1:8000'
const headers = { 'content-type': 'application/json' }
if (process.env.FAIRLANE_TOKEN) headers.authorization = `Bearer ${process.env.FAIRLANE_TOKEN}`
const capacity = 5
const running = new Map() // task id -> { attempt, stop, ended }
const polling = new AbortController() // aborted when no more tasks are wanted
let id

async function call(path, body = {}, signal) {
  for (;;) { // until it is answered: every call may be repeated
    try {
      const request = { method: 'POST', headers, body: JSON.stringify(body), signal }
      const response = await fetch(`${url}/internal/workers/${path}`, request)
      if (response.status < 500 && response.status !== 429) return await response.json()
    } catch (error) {
      if (signal?.aborted) return {}
    }
    await sleep(500)
  }
}

async function register() {
  const heartbeat_interval_ms = Number(process.env.HEARTBEAT_MS ?? 10_000)
  const about = { capacity, types: Object.keys(handlers), version: `node ${process.version}` }
  id = (await call('register', { ...about, heartbeat_interval_ms })).worker_id
  if (!id) throw new Error('The server does not let this worker register: check the token.')
  return setInterval(beat, heartbeat_interval_ms)
}

async function beat() {
  // What the server has given to this worker and is not on this list is lost, and runs elsewhere.
  const tasks = [...running].map(([task_id, { attempt }]) => ({ task_id, attempt }))
  const { error, should_drain, cancelled = [] } = await call(`${id}/heartbeat`, { tasks })
  for (const task_id of error ? running.keys() : cancelled) running.get(task_id)?.stop.abort()
  if (error || should_drain) polling.abort() // declared dead, or sent home: either way it is over
}

async function run({ task_id, task_type, attempt, parameters }, { signal }) {
  const report = { task_id, attempt, status: 'completed' }
  try {
    report.result = await handlers[task_type](parameters, signal)
  } catch ({ message, code, name, retriable, stack }) {
    Object.assign(report, { status: 'failed', error: { message, code: code ?? name, retriable, details: stack } })
  }
  const { error } = await call(`${id}/result`, report)
  if (error) console.error(`${task_id}: ${error.message}`)
  if (running.get(task_id)?.attempt === attempt) running.delete(task_id)
}

const beating = await register()
for (const name of ['SIGTERM', 'SIGINT']) process.once(name, () => polling.abort())
while (!polling.signal.aborted) {
  const wanted = { available_capacity: capacity - running.size, wait_seconds: 20, request_id: randomUUID() }
  const { tasks = [], error } = await call(`${id}/poll`, wanted, polling.signal)
  if (error) polling.abort(console.error(error.message))
  for (const task of tasks) {
    const stop = new AbortController()
    running.set(task.task_id, { attempt: task.attempt, stop, ended: run(task, stop) })
  }
  if (running.size === capacity) await Promise.race([...running.values()].map(({ ended }) => ended))
}
await Promise.all([...running.values()].map(({ ended }) => ended))
clearInterval(beating)
await call(`${id}/deregister`)
