// The list: only what is seen is in the document, and what stays is changed in place, so that focus and place are kept.

import { draw, drawing, inWords, lasting, phase, spans } from "./times.js";

const BEYOND = 4;

const set = (element, text) => { if (element.textContent !== text) element.textContent = text; };

function make(open) {
  const item = document.createElement("li");
  item.className = "row";
  const button = item.appendChild(document.createElement("button"));
  button.type = "button";
  const parts = {};
  for (const part of ["name", "state", "how", "what", "line", "age"]) {
    parts[part] = button.appendChild(document.createElement("span"));
    parts[part].className = part;
  }
  parts.svg = parts.line.appendChild(drawing());
  parts.words = parts.line.appendChild(document.createElement("span"));
  parts.words.className = "hidden";
  button.addEventListener("click", () => open(item.dataset.case));
  return { item, button, parts };
}

export class List {
  constructor(place, { open, wants }) {
    this.place = place;
    this.open = open;
    this.wants = wants;
    this.rows = [];
    this.made = new Map();
    this.waiting = false;
    addEventListener("scroll", () => this.later(), { passive: true });
    addEventListener("resize", () => this.later());
    place.addEventListener("keydown", (event) => this.key(event));
  }

  show(rows) {
    this.rows = rows;
    this.later();
  }

  later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.render(); });
  }

  // The height of a row is the style sheet's.
  height() {
    return parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--row")) || 64;
  }

  render() {
    const height = this.height(), rows = this.rows, now = Date.now();
    this.place.style.height = `${rows.length * height}px`;
    const top = this.place.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(-top / height) - BEYOND);
    const last = Math.min(rows.length, Math.ceil((innerHeight - top) / height) + BEYOND);
    const focused = this.place.contains(document.activeElement) ? document.activeElement.closest("li") : null;
    const seen = [];
    rows.forEach((row, index) => {
      if ((index >= first && index < last) || focused?.dataset.case === row.case) seen.push([row, index]);
    });
    const keep = new Set(seen.map(([row]) => row.case));
    for (const [id, { item }] of this.made) {
      if (keep.has(id)) continue;
      // Who was at a row that goes is led to the list's head, not to nowhere.
      if (item === focused) document.getElementById("nodes").focus({ preventScroll: true });
      item.remove();
      this.made.delete(id);
    }
    for (const [row, index] of seen) this.fill(row, index, height, now);
    this.order(seen.map(([row]) => this.made.get(row.case).item), focused);
    this.wants(seen.map(([row]) => row));
  }

  // The order of the document is that of the keyboard. What has the focus is not moved, or it would lose it.
  order(items, focused) {
    const middle = items.indexOf(focused);
    const before = middle < 0 ? [] : items.slice(0, middle);
    before.forEach((item, index) => {
      if (this.place.children[index] !== item) this.place.insertBefore(item, this.place.children[index]);
    });
    items.slice(before.length).forEach((item, index) => {
      const there = this.place.children[before.length + index];
      if (there !== item && item !== focused) this.place.insertBefore(item, there ?? null);
    });
  }

  fill(row, index, height, now) {
    let made = this.made.get(row.case);
    if (!made) {
      made = make(this.open);
      made.item.dataset.case = row.case;
      made.item.dataset.node = row.node;
      this.place.append(made.item);
      this.made.set(row.case, made);
    }
    const { item, parts } = made;
    const place = `translateY(${index * height}px)`;
    if (item.style.transform !== place) item.style.transform = place;
    item.setAttribute("aria-posinset", String(index + 1));
    item.setAttribute("aria-setsize", String(this.rows.length));
    item.dataset.stuck = row.stuck ? "yes" : "no";
    item.dataset.ended = row.ended ? "yes" : "no";
    parts.state.dataset.phase = row.ended ? "available" : phase(row.provision_state);
    set(parts.name, row.name || row.node);
    set(parts.state, words(row));
    set(parts.how, row.held ? `${row.strategy}, held` : row.strategy);
    set(parts.what, row.waits);
    set(parts.age, lasting((now - Date.parse(row.opened_at)) / 1000));
    const times = row.times ?? spans([{ event: "opened", at: row.opened_at, found: { provision_state: row.provision_state } }]);
    draw(parts.svg, times, row.ended ? row.ended_at : now);
    if (made.told !== row.last_entry_at) {
      made.told = row.last_entry_at;
      set(parts.words, inWords(times, now));
    }
  }

  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
    const item = event.target.closest("li");
    if (step === undefined || !item || event.altKey || event.ctrlKey || event.metaKey) return;
    const here = this.rows.findIndex((row) => row.case === item.dataset.case);
    const there = Math.min(Math.max(here + step, 0), this.rows.length - 1);
    event.preventDefault();
    this.reach(there);
  }

  reach(index) {
    const row = this.rows[index], height = this.height();
    if (!row) return;
    const top = this.place.getBoundingClientRect().top + index * height;
    if (top < 0) scrollBy(0, top - height);
    else if (top + height > innerHeight) scrollBy(0, top + 2 * height - innerHeight);
    this.render();
    this.made.get(row.case)?.button.focus({ preventScroll: true });
  }
}

function words(row) {
  if (row.ended) return row.ended;
  const state = row.provision_state ?? "not seen yet";
  return row.stuck ? `stuck: ${state}` : state;
}
