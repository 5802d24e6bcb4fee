// Asks the service, and follows its events. The token is in this module's memory only.

let token = "";
export const logIn = (text) => { token = text; };

// What the service, or the way to it, has refused.
export class Problem extends Error {
  constructor(status, words) { super(words); this.status = status; }
}

const headers = (more) => (token ? { ...more, "X-Auth-Token": token } : more);
const settings = { cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer" };

async function problem(answer) {
  const said = await answer.json().catch(() => ({}));
  const words = [said.title, said.detail, said.next].filter((word) => typeof word === "string");
  return new Problem(answer.status, words.join(": ") || `the service answers ${answer.status}`);
}

// JSON from a path of this service.
export async function ask(path) {
  const signal = AbortSignal.timeout(15_000);
  const answer = await fetch(path, { ...settings, signal, headers: headers({ Accept: "application/json" }) });
  if (!answer.ok) throw await problem(answer);
  return answer.json();
}

// All pages of a list.
export async function askAll(path, key, at_most = 20_000) {
  const all = [];
  for (let next = path; next && all.length < at_most;) {
    const page = await ask(next);
    all.push(...page[key]);
    // Only a path of ours is followed.
    next = typeof page.next === "string" && page.next.startsWith("/v1/") ? page.next : null;
  }
  return all;
}

// Splits a stream of server-sent events; `feed` takes text as it comes.
export function events(tell) {
  let rest = "", id = "", name = "", data = [];
  return (text) => {
    const lines = (rest + text).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop();
    for (const line of lines) {
      if (line === "") {
        if (data.length) tell({ id, name: name || "message", data: data.join("\n") });
        name = ""; data = [];
        continue;
      }
      const [, field, value] = /^([^:]*):? ?(.*)$/s.exec(line);
      if (field === "data") data.push(value);
      else if (field === "event") name = value;
      else if (field === "id" && !value.includes("\0")) id = value;
    }
  };
}

// So long may nothing come, not even a comment, before the stream counts as lost.
const SILENCE = 40_000;

// Follows the events for ever: `tell` hears each, `state` hears "live", or "lost" with the seconds until it is tried again.
export async function follow({ tell, state, refused }) {
  let last = "", pause = 1;
  for (;;) {
    const stop = new AbortController();
    let watch = setTimeout(() => stop.abort(), SILENCE);
    try {
      const more = last ? { "Last-Event-ID": last } : {};
      const asked = headers({ Accept: "text/event-stream", ...more });
      const answer = await fetch("/v1/events", { ...settings, signal: stop.signal, headers: asked });
      if (!answer.ok) throw await problem(answer);
      state("live", 0);
      pause = 1;
      const feed = events((event) => {
        if (event.id) last = event.id;
        tell(event);
      });
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        clearTimeout(watch);
        watch = setTimeout(() => stop.abort(), SILENCE);
        feed(value);
      }
    } catch (error) {
      if (error instanceof Problem && error.status === 401) await refused(error);
    } finally {
      clearTimeout(watch);
      stop.abort();
    }
    state("lost", pause);
    await new Promise((done) => setTimeout(done, pause * 1000 * (0.75 + Math.random() / 2)));
    pause = Math.min(pause * 2, 30);
  }
}
