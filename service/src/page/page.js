// The live page: what is asked, when, and where it is shown.

import { Problem, ask, askAll, follow, logIn } from "./api.js";
import { List } from "./list.js";
import { Model } from "./model.js";
import { Story } from "./story.js";
import { lasting } from "./times.js";

const at = (id) => document.getElementById(id);
const set = (id, words) => { if (at(id).textContent !== words) at(id).textContent = words; };
const model = new Model();
const story = new Story((path) => guarded(() => ask(path)));
const list = new List(at("list"), { open, wants });
let status = null, loaded = false, lastSaid = 0;
const toSay = [];

// Tries it; a refused login leads to the login line, and is tried again behind it.
async function guarded(what) {
  for (;;) {
    try {
      return await what();
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 401) throw error;
      await login(error);
    }
  }
}

let loggingIn = null;
function login(error) {
  loggingIn ??= new Promise((done) => {
    set("login-words", `${error.message}. The token is kept in this page's memory only.`);
    at("login").hidden = false;
    at("token").focus();
    at("login").onsubmit = (event) => {
      event.preventDefault();
      logIn(at("token").value.trim());
      at("token").value = "";
      at("login").hidden = true;
      loggingIn = null;
      done();
    };
  });
  return loggingIn;
}

function open(id) {
  const row = model.rows.get(id);
  if (row) story.open(row);
}

// Details are asked for what is seen only, a few at a time.
const wanted = new Map();
let asking = 0;
function wants(rows) {
  wanted.clear();
  for (const row of rows) if (!row.ended && row.timesOf !== (row.last_entry_at ?? null)) wanted.set(row.case, row);
  more();
}

function more() {
  for (const [id, row] of wanted) {
    if (asking >= 3) return;
    wanted.delete(id);
    asking += 1;
    detail(row).finally(() => { asking -= 1; more(); });
  }
}

async function detail(row) {
  const of = row.last_entry_at ?? null;
  // Whatever comes of it, it is not asked again until something is written down.
  row.timesOf = of;
  try {
    const { cases } = await ask(`/v1/cases/${encodeURIComponent(row.case)}`);
    for (const one of cases) if (one.case === row.case) model.put(one);
    list.later();
  } catch (error) {
    if (error instanceof Problem && error.status === 429) row.timesOf = undefined;
  }
}

// What changes is read anew, the sooner the cheaper that is.
async function poll() {
  let pause = 2_000;
  for (;;) {
    const began = performance.now();
    try {
      const [now, cases] = await guarded(() => Promise.all([ask("/v1/status"), askAll("/v1/cases?limit=1000", "cases")]));
      status = now;
      model.list(cases, Date.now());
      loaded = true;
      set("trouble", "");
      at("trouble").hidden = true;
    } catch (error) {
      set("trouble", `What is shown may be old: ${error.message}`);
      at("trouble").hidden = false;
    }
    show();
    story.refresh();
    pause = Math.min(Math.max(2_000, (performance.now() - began) * 10), 30_000);
    await quiet(pause);
  }
}

// Waits so long, less if somebody asks for it, and until the page is seen.
let wake = () => {};
function quiet(pause) {
  return new Promise((done) => {
    const timer = setTimeout(go, pause);
    function go() { if (!document.hidden) { clearTimeout(timer); wake = () => {}; done(); } }
    wake = go;
  });
}
document.addEventListener("visibilitychange", () => { if (!document.hidden) wake(); });

function tell({ name, data }) {
  let event;
  try { event = JSON.parse(data); } catch { return; }
  if (name === "missed") { wake(); return; }
  const known = model.rows.has(event.case);
  const words = model.event(name, event, Date.now());
  if (words) toSay.push(words);
  if (known) { const row = model.rows.get(event.case); row.timesOf = undefined; }
  // A new one is read at once, but not each of hundreds by itself.
  else soon();
  story.refresh(event.node);
  show();
}

let waking = 0;
function soon() { waking ||= setTimeout(() => { waking = 0; wake(); }, 250); }

// One sentence every two seconds; many become a number.
function say(now) {
  if (!toSay.length || now - lastSaid < 2_000) return;
  set("said", toSay.length > 3 ? `${toSay.length} changes; ${model.counts().stuck} stuck` : toSay.join(", "));
  toSay.length = 0;
  lastSaid = now;
}

function show() {
  const now = Date.now();
  const { stuck, open: away } = model.counts();
  const rows = model.sorted(at("find").value);
  list.show(rows);
  if (!loaded) return;
  set("count-nodes", String(status.nodes ?? "–"));
  set("count-open", String(away));
  set("count-held", String(status.held ?? "–"));
  set("count-stuck", String(stuck));
  at("count-stuck").parentElement.dataset.bad = stuck ? "yes" : "no";
  // What nobody has measured is not shown as nothing.
  const exposed = status.exposure_seconds, known = typeof exposed === "number";
  set("count-exposure", !known ? "–" : exposed > 0 && exposed < 10 ? `${exposed.toFixed(1)} s` : lasting(exposed));
  at("count-exposure").parentElement.dataset.bad = !known ? "unknown" : exposed > 0 ? "yes" : "no";
  set("count-sweep", status.last_sweep ? `${lasting((now - Date.parse(status.last_sweep)) / 1000)} ago` : "none yet");
  const alarm = [status.stopped && `Nothing is written: ${status.stopped}`, status.distrust && `Nothing is released: ${status.distrust}`];
  set("alarm", alarm.filter(Boolean).join(". "));
  at("alarm").hidden = !alarm.some(Boolean);
  set("process", [status.version, status.process].filter((word) => typeof word === "string").join(", "));
  document.title = stuck ? `(${stuck} stuck) unprovision` : "unprovision";
  set("shown", rows.length === model.rows.size ? "" : `${rows.length} of ${model.rows.size}`);
  at("empty").hidden = rows.length > 0;
  set("empty", model.rows.size ? "No node on its way is like this." : "No node is on its way. All is quiet.");
}

let retry = 0;
function state(how, seconds) {
  at("stream").dataset.state = how;
  retry = how === "lost" ? Date.now() + seconds * 1000 : 0;
  set("stream-words", how === "live" ? "live" : "the stream is lost, trying again");
  if (how === "lost") toSay.push("the stream is lost");
}

at("find").addEventListener("input", show);
setInterval(() => {
  const now = Date.now();
  if (retry) set("stream-words", `the stream is lost, trying again${retry > now ? ` in ${lasting((retry - now) / 1000)}` : ""}`);
  model.sweep(now);
  say(now);
  if (!document.hidden) show();
}, 1_000);
poll();
follow({ tell, state, refused: login });
