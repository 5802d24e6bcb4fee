// What is known of the nodes on their way. No part of the document is touched here.

import { spans } from "./times.js";

// So long a node that has ended is still shown.
const STAYS = 5_000;
const OUTCOMES = { released: "returned", ended: "ended" };

export class Model {
  constructor() {
    this.rows = new Map();
    this.heardStuck = new Map();
  }

  // The whole list, as the journal has it. Those that it has no more have ended.
  list(cases, now) {
    const there = new Set();
    for (const one of cases) {
      there.add(one.case);
      this.put(one);
    }
    for (const row of this.rows.values()) if (!there.has(row.case) && !row.ended) this.end(row, "ended", now);
  }

  put(one) {
    const row = this.rows.get(one.case) ?? { case: one.case };
    const later = !row.last_entry_at || !one.last_entry_at || one.last_entry_at >= row.last_entry_at;
    // An answer that was overtaken changes nothing.
    if (!later || row.ended) return row;
    const { entries, ...plain } = one;
    Object.assign(row, plain);
    if (entries) {
      row.times = spans(entries);
      row.timesOf = one.last_entry_at ?? null;
    }
    row.stuck = one.state === "suspended" || this.heardStuck.has(one.case);
    row.waits = one.waits_for || this.heardStuck.get(one.case) || one.reason || "";
    row.search = [one.name, one.node, one.instance, one.provision_state, one.strategy].join(" ").toLowerCase();
    this.rows.set(row.case, row);
    return row;
  }

  // What an event says of the end is more than that the journal's list has it no more.
  end(row, words, now) {
    row.ended_at ??= now;
    row.ended = words;
    row.stuck = false;
    this.heardStuck.delete(row.case);
  }

  // An event of the stream; says in words what somebody who does not look should hear.
  event(kind, event, now) {
    const name = event.name || event.node;
    const row = this.rows.get(event.case);
    if (kind === "stuck") this.heardStuck.set(event.case, event.reason);
    else this.heardStuck.delete(event.case);
    if (row) {
      if (event.provision_state) row.provision_state = event.provision_state;
      if (kind === "held") row.held = true;
      row.stuck = row.state === "suspended" || kind === "stuck";
      if (event.reason) row.waits = event.reason;
      if (kind === "released" || kind === "ended") {
        row.held = false;
        this.end(row, OUTCOMES[kind], now);
      }
    }
    return { held: `${name} is held`, released: `${name} has returned`, ended: `${name} has ended`, stuck: `${name} is stuck` }[kind];
  }

  // Ended rows go after a while.
  sweep(now) {
    for (const row of this.rows.values()) if (row.ended && now - row.ended_at > STAYS) this.rows.delete(row.case);
  }

  counts() {
    let stuck = 0, open = 0;
    for (const row of this.rows.values()) {
      if (row.ended) continue;
      open += 1;
      stuck += row.stuck ? 1 : 0;
    }
    return { stuck, open };
  }

  // Stuck ones first, then who is longest on its way.
  sorted(find) {
    const words = find.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const rows = [...this.rows.values()].filter((row) => words.every((word) => row.search.includes(word)));
    const key = (row) => Date.parse(row.opened_at);
    return rows.sort((a, b) => Number(b.stuck) - Number(a.stuck) || key(a) - key(b) || (a.case < b.case ? -1 : 1));
  }
}
