// A worker in plain Node.js, without packages: written from PROTOCOL.md alone, over long polls or the websocket.
//
//   node worker.mjs poll|socket URL TOKEN POOL SLOTS [NAME=VALUE ...]

import { existsSync } from "node:fs";

const [mode, url, token, pool, slotsText, ...labelTexts] = process.argv.slice(2);
const slots = Number(slotsText);
const labels = Object.fromEntries(labelTexts.map((text) => text.split("=", 2)));
const RESULT_BYTES_MAX = 1048576;
const FINAL = new Set([4400, 4401, 4403, 4406, 4409]);

if (process.env.SKEW_S) {
  // A worker's clock may say anything: nothing in the protocol depends on it.
  const real = Date.now;
  Date.now = () => real() + 1000 * Number(process.env.SKEW_S);
}

let worker = null;
let draining = false;
const held = new Map(); // lease id -> { lease, stop: function, stopped: bool }
const reports = new Map(); // lease id -> message that was not acknowledged
const riding = new Map(); // lease id -> messages that go along with the next poll
const refusedOnce = new Set();

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
// By a file a test says when an attempt may end.
const appearanceOf = async (path) => {
  while (!existsSync(path)) await sleep(20);
};
const jitter = (ms) => ms * (0.5 + Math.random() / 2);

// What a task asks for

class Outcome extends Error {
  constructor(type, fields) {
    super(type);
    this.report = { type, ...fields };
  }
}

async function handle(job) {
  const { payload } = job.lease;
  switch (payload.do) {
    case "echo":
      return payload.value;
    case "seen": {
      const { task, attempt, kind, key, pool, tenant, degraded, tags } = job.lease;
      return { task, attempt, kind, key, pool, tenant, degraded, tags };
    }
    case "upstream":
      return job.lease.upstream;
    case "flaky":
      if (job.lease.attempt <= payload.times) throw new Error("not yet");
      return job.lease.attempt;
    case "retry_after":
      if (job.lease.attempt > 1) return job.lease.attempt;
      throw new Outcome("fail", { class: "error", message: "later", retry_after: payload.seconds });
    case "permanent":
      throw new Outcome("fail", { class: "permanent", message: "no use" });
    case "cancel":
      throw new Outcome("fail", { class: "cancelled", message: "not wanted any more" });
    case "reject":
      if (refusedOnce.has(job.lease.task)) return job.lease.attempt;
      refusedOnce.add(job.lease.task);
      throw new Outcome("release", {});
    case "hold":
      await job.whenStopped;
      throw new Outcome("release", {});
    case "sleep":
      await Promise.race([sleep(1000 * payload.seconds), job.whenStopped]);
      if (job.stopped) throw new Outcome("release", {});
      return job.lease.attempt;
    case "once":
      if (job.lease.attempt === 1) await Promise.race([sleep(1000 * payload.seconds), job.whenStopped]);
      if (job.stopped) throw new Outcome("release", {});
      return job.lease.attempt;
    case "await":
      await Promise.race([appearanceOf(payload.file), job.whenStopped]);
      if (job.stopped) throw new Outcome("release", {});
      return job.lease.attempt;
    case "stubborn":
      await sleep(1000 * payload.seconds);
      return "too late";
    case "large":
      return "x".repeat(payload.bytes);
    case "nul":
      return "a\u0000b";
    case "twice":
      job.twice = true;
      return job.lease.attempt;
    case "checkpoint":
      if (job.lease.checkpoint != null) return job.lease.checkpoint;
      await write(job, "checkpoint", { checkpoint: { by: job.lease.attempt } });
      throw new Error("not yet");
    case "effect": {
      await write(job, "claim", { step: "given up", fingerprint: "it" });
      await write(job, "abandon", { step: "given up" });
      const made = await write(job, "claim", { step: "made", fingerprint: "it" });
      if (made.status === "new") {
        await write(job, "commit", { step: "made", receipt: { "made by": job.lease.attempt } });
        throw new Error("not yet");
      }
      return [made.status, (await write(job, "claim", { step: "given up", fingerprint: "it" })).status, made.receipt];
    }
    case "charge": {
      const usage = { model: "sim-small", input_uncached: 10 };
      const added = [];
      for (const call of ["one", "one", "two"]) added.push((await write(job, "charge", { call, usage })).added);
      return added;
    }
    case "outside":
      return write(job, "checkpoint", { checkpoint: 1 }).catch((error) => error.message);
    case "late":
      await appearanceOf(payload.file);
      await write(job, "checkpoint", { checkpoint: { by: job.lease.attempt } });
      return job.lease.attempt;
    default:
      throw new Outcome("fail", { class: "permanent", message: `unknown: ${payload.do}` });
  }
}

function begin(lease) {
  if (held.has(lease.lease_id)) return;
  const job = { lease, stopped: false };
  job.whenStopped = new Promise((resolve) => {
    job.stop = () => {
      job.stopped = true;
      resolve();
    };
  });
  held.set(lease.lease_id, job);
  attempt(job);
}

async function attempt(job) {
  let said;
  try {
    const timeout = job.lease.timeout_s;
    const late = timeout == null ? [] : [sleep(1000 * timeout).then(() => {
      throw new Outcome("fail", { class: "timeout", message: `no result within ${timeout} s` });
    })];
    const work = job.lease.payload.do === "stubborn" ? [handle(job)] : [handle(job), ...late];
    late.forEach((each) => each.catch(() => {}));
    const result = await Promise.race(work);
    said = { type: "complete", result: result === undefined ? null : result };
    if (Buffer.byteLength(JSON.stringify(said.result)) > RESULT_BYTES_MAX) {
      said = { type: "fail", class: "permanent", message: "the result is too large" };
    }
  } catch (error) {
    said = error instanceof Outcome ? error.report : { type: "fail", class: "error", message: String(error) };
  }
  if (!held.has(job.lease.lease_id)) return;
  const message = { ...said, lease_id: job.lease.lease_id };
  reports.set(message.lease_id, message);
  send(message);
  if (job.twice) send(message);
}

function forget(leaseId) {
  held.delete(leaseId);
  reports.delete(leaseId);
  riding.delete(leaseId);
}

function stop(leaseId) {
  held.get(leaseId)?.stop();
}

function failForGood(leaseId, detail) {
  riding.delete(leaseId);
  const message = { type: "fail", lease_id: leaseId, class: "permanent", message: detail };
  reports.set(leaseId, message);
  send(message);
}

let send = () => {};

// What a handler writes while it works: said again until it is answered. A refusal is an error with its code.

let refs = 0;
const writes = new Map(); // ref -> { message, resolve, reject }

function write(job, type, body) {
  const message = { type, ref: ++refs, lease_id: job.lease.lease_id, ...body };
  if (mode === "poll") return writeOverHttp(message, job.lease.run);
  return new Promise((resolve, reject) => {
    writes.set(message.ref, { message, resolve, reject });
    send(message);
  });
}

function answered(said) {
  const known = writes.get(said.ref);
  writes.delete(said.ref);
  if (said.code) known?.reject(new Error(said.code));
  else known?.resolve(said);
}

async function writeOverHttp({ type, ref, lease_id: leaseId, ...body }, run) {
  for (let faults = 0; ; faults += 1) {
    try {
      const answer = ["checkpoint", "charge"].includes(type)
        ? await call(`/leases/${leaseId}/${type}`, body)
        : await call(`/runs/${run}/receipts/${encodeURIComponent(body.step)}/${type}`,
            { ...body, step: undefined, lease_id: leaseId });
      if (answer.status < 300) return answer.body;
      if ([409, 413, 422].includes(answer.status)) throw new Error(answer.body.code);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      // The server does not answer: what is written twice does no harm.
    }
    await sleep(jitter(Math.min(5000, 100 * 2 ** Math.min(faults, 6))));
  }
}

// Over the websocket

async function runSocket() {
  for (let faults = 0; ; faults += 1) {
    const code = await oneSocket(() => (faults = 0));
    if (draining && held.size === 0) return;
    if (FINAL.has(code)) process.exit(1);
    await sleep(jitter(Math.min(5000, 100 * 2 ** Math.min(faults, 6))));
  }
}

function oneSocket(greeted) {
  return new Promise((resolve) => {
    const socket = new WebSocket(`${url.replace(/^http/, "ws")}/ws/worker/`);
    let timer = null;
    const say = (message) => socket.readyState === 1 && socket.send(JSON.stringify(message));
    socket.onopen = () =>
      say({ type: "hello", protocol: 1, token, owner: `node:${process.pid}`, pools: [pool], slots, labels,
        held: [...held.keys()], ...(worker && { worker }) });
    socket.onmessage = (event) => {
      const said = JSON.parse(event.data);
      switch (said.type) {
        case "ready":
          worker = said.worker;
          greeted();
          send = say;
          writes.forEach((each) => say(each.message));
          reports.forEach(say);
          if (draining) say({ type: "drain" });
          timer = setInterval(() => held.size && say({ type: "heartbeat", leases: [...held.keys()] }), 300);
          break;
        case "lease":
          begin(said);
          break;
        case "settled":
          forget(said.lease_id);
          if (draining && held.size === 0) socket.close();
          break;
        case "answer":
          answered(said);
          break;
        case "refused":
          failForGood(said.lease_id, said.detail);
          break;
        case "beat":
          Object.keys(said.cancel).forEach((id) => stop(Number(id)));
          said.lost.forEach((id) => {
            stop(id);
            forget(id);
          });
          break;
        case "cancel":
          stop(said.lease_id);
          break;
        case "ping":
          say({ type: "pong", n: said.n });
          break;
        case "drain":
          drain();
          break;
      }
    };
    socket.onerror = () => {};
    socket.onclose = (event) => {
      clearInterval(timer);
      send = () => {};
      resolve(event.code);
    };
    process.once("SIGUSR2", () => socket.close());
  });
}

// Over HTTP

async function call(path, body) {
  const answer = await fetch(`${url}/api/v1${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: answer.status, body: answer.status === 204 ? null : await answer.json() };
}

let polling = false;
// Small reports go along with the next poll while none is open; else each goes by itself at once.
function reportOverHttp(message) {
  const large = JSON.stringify(message).length > 65536;
  if (polling || draining || large || riding.size >= 10) return deliver(message);
  riding.set(message.lease_id, [...(riding.get(message.lease_id) ?? []), message]);
}

function settled(said) {
  if (said.state || said.stale) forget(said.lease_id);
  else failForGood(said.lease_id, said.detail);
}

async function deliver(message) {
  const { type, lease_id: leaseId, ...body } = message;
  for (let faults = 0; reports.get(leaseId) === message; faults += 1) {
    try {
      const answer = await call(`/leases/${leaseId}/${type}`, body);
      if (answer.status === 200 || answer.status === 409) return forget(leaseId);
      if (answer.status === 413 || answer.status === 422) return failForGood(leaseId, answer.body.detail);
    } catch {
      // The server does not answer: a report that comes twice does no harm.
    }
    await sleep(jitter(Math.min(5000, 100 * 2 ** Math.min(faults, 6))));
  }
}

async function keepLeases() {
  for (;;) {
    await sleep(300);
    if (!worker || !held.size) continue;
    try {
      const { status, body } = await call(`/workers/${worker}/heartbeat`, { leases: [...held.keys()] });
      if (status !== 200) continue;
      Object.keys(body.cancel).forEach((id) => stop(Number(id)));
      body.lost.forEach((id) => {
        stop(id);
        forget(id);
      });
    } catch {
      // The next one comes.
    }
  }
}

async function runPolls() {
  send = reportOverHttp;
  keepLeases();
  for (let faults = 0; !(draining && held.size === 0); ) {
    try {
      const ended = [...riding.values()].flat();
      const free = slots - held.size + riding.size;
      if (draining) {
        riding.clear();
        ended.forEach(deliver);
      }
      if (draining || free <= 0) {
        await sleep(20);
        continue;
      }
      if (!worker) {
        const known = await call("/workers", { owner: `node:${process.pid}`, pools: [pool], slots, labels });
        if (known.status === 201) worker = known.body.id;
        else if ([401, 403, 422].includes(known.status)) process.exit(1);
        else throw new Error(known.status);
      }
      const before = [...held.keys()];
      polling = true;
      const asked = { held: before, ...(ended.length && { reports: ended }) };
      const { status, body } = await call(`/workers/${worker}/lease?max=${free}&wait_s=1`, asked);
      if (status === 200) body.settled?.forEach(settled);
      if (status === 404) worker = null;
      else if (status !== 200) throw new Error(status);
      else {
        body.leases.forEach(begin);
        Object.keys(body.cancel).forEach((id) => stop(Number(id)));
        if (body.drain) drain();
      }
      polling = false;
      faults = 0;
    } catch {
      polling = false;
      faults += 1;
      await sleep(jitter(Math.min(5000, 100 * 2 ** Math.min(faults, 6))));
    }
  }
}

function drain() {
  if (draining) return;
  draining = true;
  send(mode === "socket" ? { type: "drain" } : {});
  if (held.size === 0) process.exit(0);
}

process.on("SIGTERM", drain);
await (mode === "socket" ? runSocket() : runPolls());
process.exit(0);
