// Connection, what a person keeps during updates, times, keys, notices. htmx carries the frames. This file builds no
// markup from data and decides nothing about the system.
const STALE_S = 6, POLL_MS = 5000, SILENT_MS = 12000, DOWN_MS = 15000, FAILURES_MAX = 3, ANNOUNCE_MS = 15000, TOAST_MS = 30000;
const root = document.documentElement, pace = document.body.dataset.pace, PACE_S = +pace || 1;
const byId = (id) => document.getElementById(id);
const all = (css) => document.querySelectorAll(css);
const now = () => performance.now();

// What the page shows, and how old that was when we heard of it.
const shown = { seq: -1, shape: "", at: 0, age: 0, lost: "", heard: now() };
// How it gets newer.
const link = { state: "connecting", failures: 0, downSince: now(), wrapper: null, fresh: true, quiet: false, looked: -1e9, poll: 0, polled: false };
const asked = { paused: false, hidden: document.hidden };

const secondsOld = () => shown.age + (now() - shown.heard) / 1000;
const OVER = { out: "Signed out", forbidden: "No access" }, isOver = () => OVER[link.state];

// ---- Frames

const backoff = (tries) => 100 + Math.random() * Math.min(15000, 1000 * 2 ** Math.min(tries, 4));
htmx.config.wsReconnectDelay = backoff;
htmx.createWebSocket = (url) => {
  const full = new URL(url);
  full.searchParams.set("seq", shown.seq);
  full.searchParams.set("shape", shown.shape);
  return new WebSocket(full);
};

// Every message opens with a beat: <i data-seq data-at data-age data-shape data-lost>.
function beatOf(text) {
  const beat = {}, end = text.indexOf("</i>") + 4;
  for (const [, name, value] of text.slice(0, end).matchAll(/data-(\w+)="([^"]*)"/g)) beat[name] = value;
  return [beat, end];
}

function hear({ seq, shape, at, age, lost }) {
  if (shown.seq >= 0 && seq > shown.seq) root.classList.add("fresh");
  Object.assign(shown, { seq: +seq, shape, at: +at, age: +age, lost, heard: now() });
}

function beforeFrame(event) {
  const text = event.detail.message, [beat, end] = beatOf(text);
  if (!beat.seq || (!link.fresh && beat.seq < shown.seq)) return event.preventDefault();
  Object.assign(link, { state: "open", fresh: false, failures: 0 });
  stopPolling();
  hear(beat);
  if (!link.quiet) link.looked = now();
  if (text.length === end) event.preventDefault(); // a beat alone changes nothing on the page
  else rememberFocus();
  tellServer();
  render();
}

let focusBefore = null;

function rememberFocus() {
  const active = document.activeElement;
  focusBefore = byId("live").contains(active) ? { id: active.id, section: active.closest("section[id]") } : null;
}

function afterFrame() {
  if (focusBefore && document.activeElement === document.body) {
    const heading = byId(focusBefore.section?.id)?.querySelector("h2");
    if (heading) heading.tabIndex = -1;
    (byId(focusBefore.id) || heading || byId("main")).focus({ preventScroll: true });
  }
  focusBefore = null;
  tellTimes();
  noteHeadline();
}

// Selected text is not pulled away: an innermost fragment waits. Links have ids too; no fragment is a link.
const held = new Map();

function beforeSwap({ detail }) {
  const fresh = detail.fragment.firstElementChild, selection = getSelection();
  held.delete(detail.target.id);
  if (selection.isCollapsed || !selection.containsNode(detail.target, true) || fresh.querySelector("[id]:not(a)")) return;
  held.set(detail.target.id, fresh);
  detail.shouldSwap = false;
}

function releaseHeld() {
  if (!held.size || !getSelection().isCollapsed) return;
  for (const [id, fresh] of held) byId(id)?.replaceWith(fresh);
  held.clear();
  tellTimes();
}

// ---- Connection

function opened({ detail }) {
  Object.assign(link, { state: "open", wrapper: detail.socketWrapper, fresh: true, quiet: false });
  stopPolling();
  tellServer();
  render();
}

function closed({ detail }) {
  const { code } = detail.event;
  if (link.state === "open") link.downSince = now();
  link.failures += 1;
  link.state = { 4401: "out", 4403: "forbidden" }[code] || "down";
  // The others htmx retries.
  if (code < 4000 && ![1006, 1011, 1012, 1013].includes(code)) setTimeout(() => detail.socketWrapper.reconnect(), backoff(link.failures));
  considerPolling();
  render();
}

function considerPolling() {
  if (isOver() || asked.paused || asked.hidden) return stopPolling();
  const failing = link.failures >= FAILURES_MAX || now() - link.downSince > DOWN_MS;
  if (link.poll || link.state === "open" || !failing) return;
  link.poll = setInterval(pollOnce, POLL_MS);
  pollOnce();
}

const pollOnce = () => htmx.trigger("#poll", "poll");

function stopPolling() {
  clearInterval(link.poll);
  Object.assign(link, { poll: 0, polled: false });
}

function beforePolled({ detail }) {
  const { status, responseText } = detail.xhr, age = detail.xhr.getResponseHeader("X-Live-Age");
  if (status === 403) link.state = "forbidden";
  else if (status < 400 && age === null) link.state = "out"; // we were sent to the sign-in page
  else if (status === 200) hear(beatOf(responseText)[0]);
  else if (status === 204) Object.assign(shown, { age: +age, heard: now() });
  if (isOver()) detail.shouldSwap = false;
  else rememberFocus();
}

const askFrom = ({ detail }) => Object.assign(detail.parameters, { seq: shown.seq, shape: shown.shape });

function beforeLook(event) {
  if (event.target.id === "again" && (asked.paused || asked.hidden)) event.preventDefault();
}

function polled({ detail }) {
  link.polled = detail.successful === true;
  shown.lost = detail.xhr.getResponseHeader("X-Live-Lost");
  afterFrame();
  considerPolling();
  render();
}

// ---- Pausing

function tellServer() {
  const quiet = asked.paused || asked.hidden || now() - link.looked < (PACE_S - 1) * 1000;
  if (link.state !== "open" || quiet === link.quiet) return;
  link.wrapper.sendImmediately(JSON.stringify({ do: quiet ? "pause" : "resume" }));
  link.quiet = quiet;
}

function togglePause() {
  const button = byId("pause-live");
  asked.paused = !asked.paused;
  button.setAttribute("aria-pressed", asked.paused);
  button.firstChild.data = asked.paused ? "Resume" : "Pause";
  changed();
}

function changed() {
  asked.hidden = document.hidden;
  considerPolling();
  tellServer();
  render();
}

// ---- What the person sees of it

function status() {
  const old = secondsOld(), stale = ["stale", `Stale ${span(old)}`];
  if (isOver()) return ["lock", isOver()];
  if (asked.paused) return ["pause", "Paused"];
  if (shown.lost) return ["lost", "No database"];
  if (link.state === "open") return shown.seq && old > STALE_S + PACE_S ? stale : ["live", PACE_S > 1 ? `Live ${PACE_S} s` : "Live"];
  if (link.polled) return shown.seq && old > STALE_S + 6 ? stale : ["polling", "Polling 5 s"];
  return link.state === "connecting" ? ["idle", "Connecting"] : ["off", "Disconnected"];
}

let wordBefore = "";

function render() {
  const [kind, text] = status(), pill = byId("conn");
  if (pill.lastElementChild.textContent !== text) pill.lastElementChild.textContent = text;
  showAsOf();
  const word = text.split(" ")[0];
  if (word === wordBefore) return;
  root.dataset.conn = kind;
  pill.querySelector("use").setAttribute("href", `${document.body.dataset.sprite}#${kind}`);
  if (word !== "Connecting") showBanner(kind);
  if (!["", "Connecting"].includes(wordBefore)) say(`Updates: ${text}.`);
  wordBefore = word;
}

function showAsOf() {
  if (!shown.at) return;
  const iso = new Date(shown.at * 1000).toISOString(), day = secondsOld() > 43200 ? `${iso.slice(0, 10)} ` : "";
  Object.assign(byId("as-of"), { dateTime: iso, textContent: `${day}${iso.slice(11, 19)} UTC` });
}

function showBanner(kind) {
  const banner = byId("stale"), out = link.state === "out";
  banner.textContent = (!out && banner.dataset[kind]) || "";
  banner.hidden = !banner.textContent;
  byId("signed-out").hidden = !out;
}

// Screen readers hear changes of state, never numbers, at most once in fifteen seconds.
let saidAt = -Infinity, sayTimer = 0, headlineBefore = null;

function say(text) {
  clearTimeout(sayTimer);
  sayTimer = setTimeout(() => {
    saidAt = now();
    byId("announce").textContent = text;
  }, Math.max(0, saidAt + ANNOUNCE_MS - now()));
}

function noteHeadline() {
  const text = byId("headline")?.textContent ?? null;
  if (headlineBefore !== null && text !== headlineBefore) say(text);
  headlineBefore = text;
}

function span(seconds) {
  const [unit, word] = [[86400, "d"], [3600, "h"], [60, "min"]].find(([least]) => seconds >= least) ?? [1, "s"];
  return `${Math.max(0, Math.floor(seconds / unit))} ${word}`;
}

function tellTimes() {
  for (const time of all("time[data-ago]")) {
    const text = `${span(shown.at + secondsOld() - Date.parse(time.dateTime) / 1000)} ago`;
    if (shown.at && time.dateTime && time.textContent !== text) time.textContent = text;
  }
}

// ---- Keyboard, menus, dialogs, forms

let goSince = -Infinity;

function key(event) {
  if (event.key === "Escape") closeMenus();
  if (event.target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable], dialog")) return;
  if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey || document.body.dataset.shortcuts !== "on") return;
  const { key: letter } = event, going = now() - goSince < 1500, row = document.activeElement.closest("main tr");
  goSince = letter === "g" ? now() : -Infinity;
  const named = document.querySelector(`[data-${going ? "letter" : "key"}="${CSS.escape(letter)}"]`);
  if (named) {
    event.preventDefault();
    named[named.matches("input") ? "focus" : "click"]();
  } else if (letter === "j" || letter === "k") step(row, letter === "j" ? 1 : -1);
  else if (letter.toLowerCase() === "x") row?.querySelector("[type=checkbox]")?.dispatchEvent(new MouseEvent("click", event));
}

// A list is stepped through by the links that open its rows.
function step(row, by) {
  const links = [...all("main tbody th a:first-of-type")].filter((a) => a.checkVisibility());
  const to = links.findIndex((a) => row?.contains(a)) + by;
  links[Math.min(Math.max(to, 0), links.length - 1)]?.focus();
}

function closeMenus(except) {
  for (const menu of all("details.menu[open]")) {
    if (menu.contains(except)) continue;
    if (menu.contains(document.activeElement)) menu.querySelector("summary").focus();
    menu.open = false;
  }
}

function click({ target }) {
  closeMenus(target);
  const { open, dismiss } = target.closest("[data-open], [data-dismiss]")?.dataset ?? {};
  if (open) byId(open).showModal();
  if (dismiss) byId(dismiss).remove();
}

function sendOnce(event) {
  if (event.target.dataset.sent) event.preventDefault();
  else if (event.target.method === "post") event.target.dataset.sent = "yes";
}

function allowSending() {
  for (const form of all("form[data-sent]")) delete form.dataset.sent;
}

function fadeToast() {
  const toast = byId("toast");
  if (toast?.matches(":hover, :focus-within")) setTimeout(fadeToast, TOAST_MS);
  else toast?.remove();
}

function tick() {
  if (asked.hidden) return;
  // A server says at least every five seconds that it is there.
  if (link.state === "open" && now() - shown.heard > SILENT_MS) Object.assign(link, { state: "down", downSince: now() });
  considerPolling();
  tellServer();
  render();
  if (!asked.paused) tellTimes();
}

// ---- Start: the document is parsed, htmx has not looked at it yet

root.classList.add("js");
hear(byId("live-beat").dataset);
if (pace === "off") togglePause();
const on = (target, handlers, prefix = "") => {
  for (const name in handlers) target.addEventListener(prefix + name, handlers[name]);
};
on(document.body, { wsOpen: opened, wsClose: closed, wsBeforeMessage: beforeFrame, wsAfterMessage: afterFrame, oobAfterSwap: noteHeadline, oobBeforeSwap: beforeSwap, beforeRequest: beforeLook }, "htmx:");
on(byId("poll"), { configRequest: askFrom, beforeSwap: beforePolled, afterRequest: polled }, "htmx:");
on(byId("pause-live"), { click: togglePause });
on(document, { selectionchange: releaseHeld, visibilitychange: changed, keydown: key, click, submit: sendOnce });
on(window, { pageshow: allowSending });
setTimeout(fadeToast, TOAST_MS);
setInterval(tick, 1000);
noteHeadline();
tellTimes();
