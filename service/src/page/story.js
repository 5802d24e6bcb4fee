// A node's whole history, in a dialog.

import { draw, drawing, inWords, spans } from "./times.js";

const text = (tag, words, more = {}) => Object.assign(document.createElement(tag), { textContent: words, ...more });
const spoken = (word) => String(word ?? "").replaceAll("_", " ");

const WRITES = {
  unprovision: () => "tear the instance down",
  hand_over: (write) => `hand the unit over to ${write.receiver}`,
  hand_back: (write) => `hand the unit back to ${write.to?.uuid}`,
  release: (write) => (write.whose === "guard" ? `release our hold ${write.consumer?.uuid}`
    : `release the instance's allocation ${write.consumer?.uuid}`),
  set_reserved: (write) => `set reserved of ${write.class} to ${write.to}`,
};

// What an entry says, in words.
export function told(entry) {
  const ending = entry.ending ? `${spoken(entry.ending.outcome)}: ${entry.ending.reason}` : "";
  switch (entry.event) {
    case "opened": return `begins with ${entry.strategy}`;
    case "taken": return `is worked on by ${typeof entry.by === "string" ? entry.by : JSON.stringify(entry.by)}`;
    case "saw": return `is ${entry.provision_state}${entry.maintenance ? ", in maintenance" : ""}`;
    case "freed": return "the instance's allocation is released";
    case "intended": return (WRITES[entry.write?.action] ?? (() => spoken(entry.write?.action)))(entry.write ?? {});
    case "applied": return "accepted";
    case "refused": return `refused: ${entry.refusal?.message ?? ""}`;
    case "unknown": return `nobody knows whether that was applied: ${entry.message ?? ""}`;
    case "suspended": return `stops, still held, ${ending}`;
    case "resumed": return "is taken up again";
    case "closed": return ending;
    default: return spoken(entry.event);
  }
}

const BAD = new Set(["refused", "unknown", "suspended"]);

function clock(at) {
  const time = new Date(at);
  const two = (number) => String(number).padStart(2, "0");
  return `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}.${Math.floor(time.getMilliseconds() / 100)}`;
}

function facts(one) {
  const list = document.createElement("dl");
  const outcome = one.outcome ? `, ${one.outcome}` : "";
  const lines = [
    ["Node", one.node], ["Instance", one.instance], ["Case", `${one.case} (${one.kind})`], ["Strategy", one.strategy],
    ["State", `${one.state}${outcome}${one.held ? "; something of ours may hold the provider" : ""}`],
    ["Waits for", one.waits_for ?? one.reason], ["Opened", new Date(one.opened_at).toLocaleString()], ["Cloud", one.cloud],
  ];
  for (const [name, value] of lines) if (value) list.append(text("dt", name), text("dd", String(value)));
  return list;
}

function article(one) {
  const whole = document.createElement("article");
  const entries = one.entries ?? [], times = spans(entries), now = Date.now();
  const svg = drawing();
  draw(svg, times, now);
  whole.append(svg, text("p", inWords(times, now), { className: "quiet" }), facts(one));
  if (one.commands?.length) {
    whole.append(text("h3", "Once the node is free, by hand"));
    for (const command of one.commands) whole.append(text("code", command));
  }
  const list = whole.appendChild(document.createElement("ol"));
  for (const entry of entries) {
    const item = list.appendChild(document.createElement("li"));
    const time = item.appendChild(text("time", clock(entry.at), { dateTime: entry.at, title: entry.at }));
    time.after(text("span", told(entry)));
    item.dataset.bad = BAD.has(entry.event) ? "yes" : "no";
  }
  return whole;
}

export class Story {
  constructor(ask) {
    this.ask = ask;
    this.box = document.getElementById("story");
    this.title = document.getElementById("story-title");
    this.body = document.getElementById("story-body");
    this.node = null;
    document.getElementById("story-close").addEventListener("click", () => this.box.close());
    // Beside the dialog is outside of it.
    this.box.addEventListener("click", (event) => { if (event.target === this.box) this.box.close(); });
    this.box.addEventListener("close", () => { this.node = null; });
  }

  async open(row) {
    this.node = row.node;
    this.title.textContent = row.name || row.node;
    this.body.replaceChildren(text("p", "reading the journal …", { className: "quiet" }));
    this.box.showModal();
    this.title.focus();
    await this.refresh();
  }

  // Reads it anew, where it is of this node.
  async refresh(node = this.node) {
    if (!this.node || node !== this.node) return;
    let shown;
    try {
      const { cases } = await this.ask(`/v1/cases/${encodeURIComponent(node)}`);
      shown = [...cases].reverse().map(article);
    } catch (error) {
      shown = [text("p", error.message, { className: "banner trouble" })];
    }
    if (node !== this.node) return;
    const { scrollTop } = this.box;
    this.body.replaceChildren(...shown);
    this.box.scrollTop = scrollTop;
  }
}
