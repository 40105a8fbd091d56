"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const words = { S: "STRICT", P: "PARTIAL", F: "FAILED", U: "UNTESTED" };
  const severity = "FPUS";
  const body = document.querySelector("tbody");
  const form = document.forms.filters;
  const fields = ["q", "family", "kind", "ns", "verdict", "dtype", "sort"];

  // Text only ever enters the page as a text node: nothing that an operator or a reason says can become markup.
  function element(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
    made.append(...children.filter((child) => child !== null && child !== ""));
    return made;
  }

  function row(item, index) {
    const button = element("button", { type: "button", "aria-expanded": "false" }, item.op);
    const cells = data.dtypes.map((dtype, i) => {
      const letter = item.v[i] || "-";
      if (letter === "-") return element("td", { class: "d", role: "cell" });
      const says = `${dtype}: ${words[letter]}`;
      const cases = item.n[i] ? `, ${item.n[i]} cases` : "";
      return element("td", { class: "d", role: "cell", title: says + cases },
        element("i", { class: letter, "data-d": data.short[i], "aria-hidden": "true" }),
        element("span", { class: "vh" }, says));
    });
    const standing = item.verdict ? words[item.verdict] : "vendor-only";
    const tr = element("tr", { class: item.v ? "row" : "row untried", role: "row" },
      element("td", { class: "op", role: "rowheader" }, button),
      element("td", { class: "fam", role: "cell" }, item.family, element("small", {}, item.kind || "")),
      element("td", { class: "ver", role: "cell" }, element("span", { class: `pill ${item.verdict || "U"}` }, standing)),
      ...cells,
      element("td", { class: "why", role: "cell" },
        item.reason ? element("span", {}, item.reason) : null,
        item.source ? element("small", { class: "src" }, item.source) : null));
    item.text = `${item.op} ${item.reason || ""} ${item.source || ""} ${item.how || ""}`.toLowerCase();
    item.button = button;
    item.index = index;
    button.addEventListener("click", () => toggle(item));
    item.row = tr;
    return tr;
  }

  function details(item) {
    const list = element("dl");
    const fact = (name, value, code) => {
      if (value) list.append(element("dt", {}, name), element("dd", {}, code ? element("code", {}, value) : value));
    };
    fact("reason", item.reason);
    if (item.how !== item.reason) fact("how", item.how);
    fact("source", item.source, true);
    fact("namespace", item.ns);
    fact("go on with", item.next, true);
    fact("measured", item.provenance);
    const parts = [list];
    const tested = data.dtypes.map((dtype, i) => [dtype, item.v[i], item.n[i]]).filter(([, letter]) => letter && letter !== "-");
    if (tested.length) {
      parts.push(element("ul", {}, ...tested.map(([dtype, letter, cases]) => element("li", {},
        element("code", {}, dtype),
        element("span", {}, element("span", { class: `pill ${letter}` }, words[letter])),
        element("small", {}, cases ? `${cases} cases` : ""),
        element("span", {}, (item.reasons || {})[dtype] || "")))));
    }
    for (const [dtype, script] of Object.entries(item.scripts || {})) {
      parts.push(element("details", {}, element("summary", {}, `reproduce ${dtype}`), element("pre", { tabindex: "0" }, script)));
    }
    return element("tr", { class: "more", role: "row", id: `more-${item.index}` },
      element("td", { role: "cell", colspan: String(data.dtypes.length + 4) }, ...parts));
  }

  function toggle(item, open = !item.more, remember = true) {
    if (open && !item.more) {
      item.row.after(item.more = details(item));
      item.more.hidden = item.row.hidden;
    }
    if (!open && item.more) { item.more.remove(); item.more = null; }
    item.button.setAttribute("aria-expanded", String(open));
    if (open) item.button.setAttribute("aria-controls", `more-${item.index}`);
    else item.button.removeAttribute("aria-controls");
    if (remember) save();
  }

  // What is asked stands in the address, so that a view can be sent to somebody.
  function load() {
    if (location.hash === "#filters") return;
    const asked = new URLSearchParams(location.hash.slice(1));
    for (const name of fields) {
      const field = form.elements[name];
      field.value = asked.get(name) || "";
      if (field.selectedIndex === -1) field.value = "";
    }
    const open = new Set(asked.getAll("op"));
    apply();
    for (const item of data.rows) {
      const wanted = open.has(item.op);
      if (wanted !== Boolean(item.more)) toggle(item, wanted, false);
    }
    const first = data.rows.find((item) => open.has(item.op) && !item.row.hidden);
    if (first) first.row.scrollIntoView({ block: "center" });
    else if (location.hash.length > 1) document.getElementById("filters").scrollIntoView();
  }

  function save() {
    const asked = new URLSearchParams();
    for (const name of fields) if (form.elements[name].value) asked.set(name, form.elements[name].value);
    for (const item of data.rows) if (item.more) asked.append("op", item.op);
    const hash = asked.toString();
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  }

  function matches(item, asked, terms) {
    const i = asked.dtype ? data.dtypes.indexOf(asked.dtype) : -1;
    const letter = i < 0 ? item.verdict : item.v[i] || "-";
    if (i >= 0 && letter === "-") return false;
    if (asked.verdict === "MISSING") { if (item.standing !== "missing") return false; }
    else if (asked.verdict === "UNTESTED" && i < 0) { if (item.standing !== "untested") return false; }
    else if (asked.verdict && words[letter] !== asked.verdict) return false;
    return (!asked.family || item.family === asked.family) && (!asked.kind || item.kind === asked.kind) &&
      (!asked.ns || item.ns === asked.ns) && terms.every((term) => item.text.includes(term));
  }

  const orders = {
    "": (a, b) => a.index - b.index,
    worst: (a, b) => severity.indexOf(a.verdict || "S") - severity.indexOf(b.verdict || "S") || a.index - b.index,
    family: (a, b) => a.family.localeCompare(b.family) || a.index - b.index,
  };
  let order = "";

  function apply() {
    const asked = Object.fromEntries(fields.map((name) => [name, form.elements[name].value]));
    const terms = asked.q.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const item of data.rows) {
      const visible = matches(item, asked, terms);
      shown += visible;
      item.row.hidden = !visible;
      if (item.more) item.more.hidden = !visible;
    }
    if (asked.sort !== order) {
      order = asked.sort;
      const sorted = [...data.rows].sort(orders[order] || orders[""]);
      body.append(...sorted.flatMap((item) => (item.more ? [item.row, item.more] : [item.row])));
    }
    for (const th of document.querySelectorAll("thead th.d")) th.toggleAttribute("aria-current", th.title === asked.dtype);
    for (const button of document.querySelectorAll(".legend button")) {
      button.setAttribute("aria-pressed", String(button.value === asked.verdict));
    }
    document.getElementById("count").textContent =
      `${shown.toLocaleString("en")} of ${data.rows.length.toLocaleString("en")} overloads`;
    document.getElementById("none").hidden = shown > 0;
    document.querySelector("table").hidden = shown === 0;
  }

  body.append(...data.rows.map(row));
  const narrow = matchMedia("(max-width: 900px)");
  const fold = () => { for (const part of document.querySelectorAll(".glance, form details")) part.open = !narrow.matches; };
  narrow.addEventListener("change", fold);
  fold();
  load();
  const tools = document.getElementById("filters");
  new ResizeObserver(() => document.body.style.setProperty("--tools", `${tools.offsetHeight}px`)).observe(tools);
  addEventListener("hashchange", load);
  form.addEventListener("input", () => { apply(); save(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => { apply(); save(); form.elements.q.focus(); }));
  for (const button of document.querySelectorAll(".legend button")) {
    button.addEventListener("click", () => {
      const field = form.elements.verdict;
      field.value = field.value === button.value ? "" : button.value;
      apply();
      save();
    });
  }
  addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      form.elements.q.focus();
    }
  });
})();
