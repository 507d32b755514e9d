// The console's own script: connection state, what the person keeps during updates, relative times, shortcuts, notices.
// htmx and its ws extension carry the frames; this file never builds markup and never decides about the system.
(() => {
  "use strict";
  const STALE_S = 7, POLL_MS = 5000, DOWN_MS = 15000, FAILURES_MAX = 3, ANNOUNCE_MS = 15000, TOAST_MS = 30000;
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  root.classList.add("js");

  // What the page shows: sequence number, shape, when its snapshot was taken, and its age when we heard of it.
  const shown = { seq: -1, shape: "", at: 0, age: 0, heard: performance.now() };
  // How it gets newer: "connecting", "open", "down", or for good "signed-out" / "forbidden".
  const link = { state: "connecting", failures: 0, downSince: performance.now(), wrapper: null, poll: 0, polled: false, tries: 0 };
  const asked = { paused: false, hidden: document.hidden };

  const secondsOld = () => shown.age + (performance.now() - shown.heard) / 1000;
  const serverNow = () => shown.at + secondsOld();

  // --- Frames -----------------------------------------------------------------------------------------------------

  htmx.config.wsReconnectDelay = (tries) => Math.random() * Math.min(15000, 1000 * 2 ** Math.min(tries, 4)) + 100;
  htmx.createWebSocket = (url) => {
    if (shown.seq < 0) hear(byId("live-beat").dataset);
    const full = new URL(url);
    full.searchParams.set("seq", shown.seq);
    full.searchParams.set("shape", shown.shape);
    return new WebSocket(full);
  };

  function readBeat(text) {
    const beat = {};
    for (const [, name, value] of text.matchAll(/data-(\w+)="([^"]*)"/g)) beat[name] = value;
    return beat;
  }

  function hear(beat) {
    if (Number(beat.seq) > shown.seq && shown.seq >= 0) root.classList.add("fresh");
    Object.assign(shown, { seq: Number(beat.seq), shape: beat.shape, at: Number(beat.at), age: Number(beat.age), heard: performance.now() });
  }

  let focusBefore = null;

  function beforeFrame(event) {
    const text = event.detail.message;
    const end = text.indexOf("</i>") + 4;
    const beat = readBeat(text.slice(0, end));
    const late = Number(beat.seq) < shown.seq && link.state === "open" && link.heardOnce;
    if (late || end < 4) return event.preventDefault();
    Object.assign(link, { heardOnce: true, failures: 0, tries: 0 });
    hear(beat);
    if (text.length === end) event.preventDefault();  // a beat changes nothing on the page
    else rememberFocus();
    render();
  }

  function rememberFocus() {
    const active = document.activeElement;
    focusBefore = active && byId("live")?.contains(active) ? { id: active.id, section: active.closest("section[id]")?.id } : null;
  }

  function afterFrame() {
    if (focusBefore && document.activeElement === document.body) {
      const heading = focusBefore.section && byId(focusBefore.section)?.querySelector("h2");
      if (heading) heading.tabIndex = -1;
      (focusBefore.id && byId(focusBefore.id) || heading || byId("main")).focus({ preventScroll: true });
    }
    focusBefore = null;
    tellTimes();
    noteHeadline();
  }

  // Text that is being selected is not pulled away: an innermost fragment waits until the selection is gone.
  const held = new Map();

  function beforeSwap(event) {
    const { target, fragment } = event.detail;
    const fresh = fragment.firstElementChild;
    const selection = getSelection();
    held.delete(target.id);
    if (fresh && !selection.isCollapsed && selection.containsNode(target, true) && !fresh.querySelector("[id]")) {
      held.set(target.id, fresh);
      event.detail.shouldSwap = false;
    }
  }

  function releaseHeld() {
    if (!held.size || !getSelection().isCollapsed) return;
    for (const [id, fresh] of held) byId(id)?.replaceWith(fresh);
    held.clear();
    tellTimes();
  }

  // --- Connection -------------------------------------------------------------------------------------------------

  const RETRIED_BY_HTMX = [1006, 1011, 1012, 1013];

  function opened(event) {
    Object.assign(link, { state: "open", wrapper: event.detail.socketWrapper, heardOnce: false });
    stopPolling();
    tellServer();
    render();
  }

  function closed(event) {
    const { code } = event.detail.event;
    const wrapper = event.detail.socketWrapper;
    if (link.state === "open") link.downSince = performance.now();
    link.failures += 1;
    link.state = code === 4401 ? "signed-out" : code === 4403 ? "forbidden" : "down";
    if (link.state !== "down") stopPolling();
    else if (code < 4000 && !RETRIED_BY_HTMX.includes(code)) {
      setTimeout(() => wrapper?.reconnect(), htmx.config.wsReconnectDelay(link.tries++));
    }
    considerPolling();
    render();
  }

  function considerPolling() {
    const long = performance.now() - link.downSince > DOWN_MS;
    if (link.poll || link.state === "open" || isOver() || asked.paused || asked.hidden) return;
    if (link.failures < FAILURES_MAX && !long) return;
    link.poll = setInterval(pollOnce, POLL_MS);
    pollOnce();
  }

  const isOver = () => link.state === "signed-out" || link.state === "forbidden";
  const pollOnce = () => htmx.trigger("#poll", "poll");

  function stopPolling() {
    clearInterval(link.poll);
    Object.assign(link, { poll: 0, polled: false });
  }

  function askPoll(event) {
    if (event.target.id === "poll") Object.assign(event.detail.parameters, { seq: shown.seq, shape: shown.shape });
  }

  function beforePolled(event) {
    if (event.target.id !== "poll") return;
    const { xhr } = event.detail;
    const age = xhr.getResponseHeader("X-Live-Age");
    if (xhr.status < 400 && age === null) {  // we were sent to the sign-in page
      event.detail.shouldSwap = false;
      link.state = "signed-out";
      stopPolling();
    } else if (xhr.status === 403) {
      link.state = "forbidden";
      stopPolling();
    } else if (xhr.status === 200) {
      hear(readBeat(xhr.responseText.slice(0, xhr.responseText.indexOf("</i>"))));
      rememberFocus();
    } else if (xhr.status === 204) Object.assign(shown, { age: Number(age), heard: performance.now() });
    render();
  }

  function polled(event) {
    if (event.target.id !== "poll") return;
    link.polled = event.detail.successful === true;
    if (link.polled) afterFrame();
    render();
  }

  // --- Pausing ----------------------------------------------------------------------------------------------------

  function tellServer() {
    if (link.state !== "open") return;
    if (asked.paused || asked.hidden) link.quiet = true;
    else if (!link.quiet) return;
    link.wrapper.sendImmediately(JSON.stringify({ do: asked.paused || asked.hidden ? "pause" : "resume" }));
    if (!asked.paused && !asked.hidden) link.quiet = false;
  }

  function togglePause() {
    asked.paused = !asked.paused;
    byId("pause-live").setAttribute("aria-pressed", String(asked.paused));
    byId("pause-live").firstChild.data = asked.paused ? "Resume" : "Pause";
    if (asked.paused) stopPolling();
    else considerPolling();
    say(asked.paused ? "Live updates paused." : "Live updates resumed.");
    tellServer();
    render();
  }

  function visibility() {
    asked.hidden = document.hidden;
    if (asked.hidden) stopPolling();
    else considerPolling();
    tellServer();
  }

  // --- What the person sees of it ---------------------------------------------------------------------------------

  function status() {
    const old = Math.round(secondsOld());
    if (link.state === "signed-out") return ["lock", "Signed out"];
    if (link.state === "forbidden") return ["lock", "No access"];
    if (asked.paused) return ["pause", "Paused"];
    if (link.poll && link.polled) return old > STALE_S + 5 ? ["stale", `Stale ${age(old)}`] : ["polling", "Polling 5 s"];
    if (link.state === "open") return shown.seq > 0 && old > STALE_S ? ["stale", `Stale ${age(old)}`] : ["live", "Live"];
    if (link.state === "connecting") return ["off", "Connecting"];
    return ["off", "Disconnected"];
  }

  const BANNERS = {
    stale: "These numbers are old: no engine has written newer ones.",
    off: "The server does not answer. These are the last numbers that came; trying again.",
    lock: "You are signed out. Sign in again to go on from here.",
  };

  let statusBefore = "";

  function render() {
    const [kind, text] = status();
    const pill = byId("conn");
    if (pill.lastElementChild.textContent !== text) pill.lastElementChild.textContent = text;
    const time = byId("as-of");
    const clock = shown.at ? new Date(shown.at * 1000).toISOString() : "";
    if (clock) Object.assign(time, { dateTime: clock, textContent: `${clock.slice(0, 10)} ${clock.slice(11, 19)} UTC` });
    if (kind === statusBefore) return;
    root.dataset.conn = kind;
    pill.querySelector("use").setAttribute("href", `${document.body.dataset.sprite}#${kind}`);
    showBanner(kind);
    if (statusBefore && !(statusBefore === "off" && kind === "live" && !link.wasLive)) say(`${text}.`);
    if (kind === "live") link.wasLive = true;
    statusBefore = kind;
  }

  function showBanner(kind) {
    const banner = byId("stale");
    const text = link.state === "forbidden" ? "You may no longer see this page." : link.state === "connecting" ? "" : BANNERS[kind];
    if (link.state === "connecting" && !banner.hidden) return;
    banner.hidden = !text;
    banner.textContent = text || "";
    if (link.state !== "signed-out") return;
    const again = document.createElement("a");
    again.href = `${document.body.dataset.signIn}?next=${encodeURIComponent(location.pathname + location.search)}`;
    again.textContent = "Sign in again";
    banner.replaceChildren("You are signed out. ", again, " to go on from here.");
  }

  // Screen readers hear changes of state, never numbers, and at most one message per fifteen seconds.
  let saidAt = -Infinity, toSay = "", sayTimer = 0, headlineBefore = null;

  function say(text) {
    toSay = text;
    clearTimeout(sayTimer);
    sayTimer = setTimeout(() => {
      saidAt = performance.now();
      byId("announce").textContent = toSay;
    }, Math.max(0, saidAt + ANNOUNCE_MS - performance.now()));
  }

  function noteHeadline() {
    const text = byId("headline")?.textContent ?? null;
    if (headlineBefore !== null && text !== null && text !== headlineBefore) say(text);
    headlineBefore = text;
  }

  function age(seconds) {
    if (seconds < 60) return `${Math.max(0, Math.round(seconds))} s`;
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
    if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
    return `${Math.floor(seconds / 86400)} d`;
  }

  function tellTimes() {
    for (const time of document.querySelectorAll("time[data-ago]")) {
      const at = Date.parse(time.dateTime);
      if (Number.isNaN(at) || !shown.at) continue;
      const text = `${age(serverNow() - at / 1000)} ago`;
      if (time.textContent !== text) time.textContent = text;
    }
  }

  // --- Keyboard, menus, dialogs, forms ----------------------------------------------------------------------------

  let goSince = -Infinity;

  function key(event) {
    const typing = event.target.closest?.("input, textarea, select, [contenteditable], dialog");
    if (event.key === "Escape") closeMenus();
    if (typing || event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (document.body.dataset.shortcuts !== "on") return;
    const going = performance.now() - goSince < 1500;
    goSince = -Infinity;
    if (going) return document.querySelector(`.rail a[data-letter="${CSS.escape(event.key)}"]`)?.click();
    if (event.key === "g") goSince = performance.now();
    else if (event.key === ".") togglePause();
    else if (event.key === "?") byId("help").showModal();
  }

  function closeMenus(except) {
    for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(except)) {
      if (menu.contains(document.activeElement)) menu.querySelector("summary").focus();
      menu.open = false;
    }
  }

  function click(event) {
    const opener = event.target.closest("[data-open]"), dismisser = event.target.closest("[data-dismiss]");
    closeMenus(event.target);
    if (opener) byId(opener.dataset.open).showModal();
    if (dismisser) byId(dismisser.dataset.dismiss).remove();
  }

  function sendOnce(event) {
    if (event.target.dataset.sent) event.preventDefault();
    else if (event.target.method === "post") event.target.dataset.sent = "yes";
  }

  function fadeToast() {
    const toast = byId("toast");
    if (toast && !toast.matches(":hover, :focus-within")) toast.remove();
    else if (toast) setTimeout(fadeToast, TOAST_MS);
  }

  // --- Start ------------------------------------------------------------------------------------------------------

  document.addEventListener("DOMContentLoaded", () => {
    const listen = (name, handler) => document.body.addEventListener(name, handler);
    hear(byId("live-beat").dataset);
    listen("htmx:wsOpen", opened);
    listen("htmx:wsClose", closed);
    listen("htmx:wsBeforeMessage", beforeFrame);
    listen("htmx:wsAfterMessage", afterFrame);
    listen("htmx:oobBeforeSwap", beforeSwap);
    listen("htmx:configRequest", askPoll);
    listen("htmx:beforeSwap", beforePolled);
    listen("htmx:afterRequest", polled);
    document.addEventListener("selectionchange", releaseHeld);
    document.addEventListener("visibilitychange", visibility);
    document.addEventListener("keydown", key);
    document.addEventListener("click", click);
    document.addEventListener("submit", sendOnce);
    byId("pause-live").addEventListener("click", togglePause);
    addEventListener("pageshow", () => document.querySelectorAll("form[data-sent]").forEach((form) => delete form.dataset.sent));
    setTimeout(fadeToast, TOAST_MS);
    noteHeadline();
    tellTimes();
    setInterval(() => {
      if (asked.hidden) return;
      considerPolling();
      render();
      if (!asked.paused) tellTimes();
    }, 1000);
  });
})();
