// The time line of a case: what its node was at, and when something of ours held it.

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 1000;
const HOLDS = new Set(["hand_over", "add_provider_trait"]);
const LETS_GO = new Set(["hand_back", "remove_provider_trait"]);

// What a provision state is to those who look.
export function phase(state) {
  if (!state) return "other";
  if (/fail|error/.test(state)) return "failed";
  if (/wait|hold/.test(state)) return "waiting";
  if (state === "deleting") return "deleting";
  if (state === "cleaning") return "cleaning";
  return state === "available" ? "available" : "other";
}

// Spans of states and of holds, from the entries; `to` is null for what still goes on.
export function spans(entries) {
  const states = [], holds = [], marks = [];
  let sent = null, reserved = 0;
  const begin = (list, at, more) => { end(list, at); list.push({ ...more, from: at, to: null }); };
  const end = (list, at) => { const last = list.at(-1); if (last && last.to === null) last.to = at; };
  const held = () => holds.at(-1)?.to === null;
  for (const entry of entries) {
    const at = Date.parse(entry.at);
    switch (entry.event) {
      case "opened":
        reserved = entry.found?.reserved ?? 0;
        begin(states, at, { state: entry.found?.provision_state });
        break;
      case "saw":
        if (states.at(-1)?.state !== entry.provision_state) begin(states, at, { state: entry.provision_state });
        break;
      case "intended": sent = entry.write; break;
      case "applied":
        if (sent) {
          const up = sent.action === "set_reserved" && sent.to > reserved;
          const down = sent.action === "set_reserved" && sent.to <= reserved;
          const ours = sent.action === "release" && sent.whose === "guard";
          if ((HOLDS.has(sent.action) || up) && !held()) begin(holds, at, {});
          if (LETS_GO.has(sent.action) || down || ours) end(holds, at);
        }
        sent = null;
        break;
      case "refused": case "unknown": marks.push(at); break;
      case "closed": end(states, at); end(holds, at); break;
    }
  }
  return { states: states.filter((span) => span.state), holds, marks };
}

// Seconds in words.
export function lasting(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60 ? `${s % 60} s` : ""}`.trim();
  if (s < 172_800) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60) || 0} min`;
  return `${Math.floor(s / 86_400)} d ${Math.floor((s % 86_400) / 3600)} h`;
}

// The same, for somebody who does not see the drawing.
export function inWords({ states, holds }, now) {
  const one = ({ state, from, to }) => `${state} ${lasting(((to ?? now) - from) / 1000)}`;
  const hold = holds.map(({ from, to }) => lasting(((to ?? now) - from) / 1000));
  return [...states.map(one), hold.length ? `held by us ${hold.join(" and ")}` : "not held by us"].join(", ");
}

// Draws into an <svg>; what is there is used again.
export function draw(svg, times, now) {
  const all = [...times.states, ...times.holds];
  const from = Math.min(...all.map((span) => span.from), now);
  const to = Math.max(...all.map((span) => span.to ?? now), from + 1);
  const at = (time) => ((Math.min(Math.max(time, from), to) - from) / (to - from)) * WIDTH;
  const wanted = [{ cls: "ground", x: 0, w: WIDTH, y: 1, h: 13 }];
  for (const { state, from: a, to: b } of times.states)
    wanted.push({ cls: "state", phase: phase(state), x: at(a), w: Math.max(at(b ?? now) - at(a), 3), y: 1, h: 13 });
  for (const { from: a, to: b } of times.holds)
    wanted.push({ cls: "hold", x: at(a), w: Math.max(at(b ?? now) - at(a), 3), y: 17, h: 4 });
  for (const mark of times.marks) wanted.push({ cls: "mark", x: Math.min(at(mark), WIDTH - 3), w: 3, y: 1, h: 13 });
  while (svg.childElementCount > wanted.length) svg.lastElementChild.remove();
  wanted.forEach((want, index) => {
    const rect = svg.children[index] ?? svg.appendChild(document.createElementNS(SVG, "rect"));
    rect.setAttribute("class", want.cls);
    if (want.phase) rect.dataset.phase = want.phase; else delete rect.dataset.phase;
    for (const [name, value] of [["x", want.x], ["width", want.w], ["y", want.y], ["height", want.h]])
      rect.setAttribute(name, String(Math.round(value * 10) / 10));
  });
}

// An empty drawing.
export function drawing() {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "times");
  svg.setAttribute("viewBox", `0 0 ${WIDTH} 22`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  return svg;
}
