// The report's page, explorable: another baseline, some of the ratios, what is behind each.
// The page is complete without. All numbers were computed from the paired processes before (report/ratios.py); here they
// are chosen among, and drawn by the rules of report/forest.py. Nothing is loaded, and nothing is sent.
"use strict";

(() => {
  const REACH = 5; // as in looks.py
  const APART = 15; // as in forest.py
  const NONE = "none";
  const SVG = "http://www.w3.org/2000/svg";

  sortTables();
  unfoldForPrint();
  const source = document.getElementById("benchlib-ratios");
  if (source) explore(source.closest(".ratios"), read(JSON.parse(source.textContent)));

  // ---- the data, with names

  function read({ filters, groups, texts }) {
    const text = (place) => texts[place];
    return {
      filters,
      groups: groups.map((group) => ({
        title: text(group.title),
        task: text(group.task),
        ended: text(group.ended),
        machine: text(group.machine),
        why: text(group.why),
        margin: group.margin,
        control: group.control && interval(group.control, group.control[3]),
        members: group.members.map(([label, subject, versions, knobs, choices, details]) => ({
          label: text(label),
          subject: text(subject),
          versions: text(versions),
          knobs: text(knobs),
          choices: choices.map(text),
          details: details.map(([what, usual]) => ({ text: text(what), usual: usual === 1 })),
        })),
        shared: sharedBy(group.members.map((member) => member[5])).map(text),
        ratios: new Map(
          group.ratios.map(([of, to, estimate, low, high, processes, kind, verdict, shown, key, files, reason]) => [
            `${of} ${to}`,
            {
              ...interval([estimate, low, high], shown),
              processes,
              kind: text(kind),
              verdict: text(verdict),
              key,
              files: files.split(" ").filter(Boolean),
              reason: text(reason),
            },
          ]),
        ),
      })),
    };
  }

  // Of the details of some members, with their texts' places, those that all of them have.
  function sharedBy([first, ...others]) {
    const places = others.map((details) => new Set(details.map(([what]) => what)));
    return first.map(([what]) => what).filter((what) => places.every((own) => own.has(what)));
  }

  function interval([estimate, low, high], text) {
    return { estimate, low, high, text };
  }

  // ---- a view: which baseline, which filters

  function emptyView() {
    return { baseline: "", filters: new Map() };
  }

  // The place of the member that the others of a group are compared with; null: it has none of the wanted subject.
  function baselineOf(group, view) {
    if (!view.baseline) return 0;
    const place = group.members.findIndex((member) => member.subject === view.baseline);
    return place < 0 ? null : place;
  }

  // ---- the picture

  function explore(section, data) {
    const forest = section.querySelector(".forest");
    const rows = [...forest.querySelectorAll("tbody tr[data-member]")].map((row) => ({
      row,
      group: data.groups[row.dataset.group],
      place: Number(row.dataset.member),
      look: row.querySelector(".mark"),
    }));
    const told = element("p", { className: "told", role: "status" });
    const card = element("div", { className: "card", hidden: true, id: "card", role: "region" });
    card.setAttribute("aria-live", "polite");
    card.setAttribute("aria-label", "What is behind a ratio");
    let view = emptyView();
    let current = []; // each row, with its ratio as it is shown
    let shown = null; // the row that the card is about
    const controls = controlsOf(data, () => view, change);
    forest.before(controls.element, told);
    forest.append(card);

    function change(next) {
      view = next;
      draw();
    }

    // At first the picture is there already.
    function draw(isThere = false) {
      hideCard();
      controls.show(view);
      const now = rows.map((one) => {
        const to = baselineOf(one.group, view);
        const ratio = to === null ? undefined : one.group.ratios.get(`${one.place} ${to}`);
        const visible = to !== null && one.place !== to && passes(data, one, view);
        return { ...one, to, ratio, visible };
      });
      const visible = now.filter((one) => one.visible);
      const axis = axisOf(visible.map((one) => one.ratio).filter(Boolean), new Set(data.groups.map((one) => one.margin)));
      if (!isThere) {
        for (const ticks of forest.querySelectorAll(".ticks")) drawAxis(ticks, axis);
        for (const one of now) {
          one.row.hidden = !one.visible;
          if (one.visible) drawRow(one, axis, forest.dataset.usual, view);
        }
      }
      for (const part of forest.querySelectorAll(".of-workload, tbody")) {
        part.hidden = !part.querySelector("tr[data-member]:not([hidden])");
      }
      const without = data.groups.filter((group) => baselineOf(group, view) === null).length;
      const parts = [`${visible.length} of ${rows.length - data.groups.length} ratios`];
      if (view.baseline) parts.push(`relative to ${view.baseline}`);
      if (without) parts.push(`${without} comparisons without it are left out`);
      told.textContent = `${parts.join("; ")}.`;
      told.classList.toggle("chosen", Boolean(view.baseline || view.filters.size));
      const kinds = new Set(visible.map((one) => (one.ratio ? one.ratio.kind : NONE)));
      for (const entry of section.querySelectorAll(".legend [data-kind]")) entry.hidden = !kinds.has(entry.dataset.kind);
      say(".relative-to", view.baseline || forest.dataset.usual);
      // The band stays that of the processes that were there twice, whatever else is compared with.
      say(".of-control", view.baseline ? "what a comparison was made with" : "the baseline");
      current = now;
    }

    function say(where, text) {
      for (const place of section.querySelectorAll(where)) place.textContent = text;
    }

    // ---- what is behind a ratio

    function showCard(row) {
      const one = current.find((each) => each.row === row);
      if (!one || !one.visible || shown === row) return;
      hideCard();
      shown = row;
      row.classList.add("chosen");
      card.replaceChildren(cardOf(one));
      card.hidden = false;
      const top = row.getBoundingClientRect().bottom - forest.getBoundingClientRect().top;
      card.style.top = `${top + 2}px`;
    }

    function hideCard() {
      if (shown) shown.classList.remove("chosen");
      shown = null;
      card.hidden = true;
    }

    forest.addEventListener("mouseover", (event) => {
      const row = event.target.closest("tr[data-member]");
      if (row) showCard(row);
    });
    forest.addEventListener("mouseleave", hideCard);
    forest.addEventListener("focusin", (event) => {
      const row = event.target.closest("tr[data-member]");
      if (row) showCard(row);
    });
    forest.addEventListener("focusout", (event) => {
      if (!forest.contains(event.relatedTarget)) hideCard();
    });
    forest.addEventListener("keydown", (event) => {
      if (event.key === "Escape") hideCard();
    });
    for (const one of rows) one.row.tabIndex = 0; // what is behind a ratio is there by keyboard, too
    draw(true);
  }

  function passes(data, one, view) {
    const choices = one.group.members[one.place].choices;
    return data.filters.every((name, at) => !view.filters.has(name) || view.filters.get(name) === choices[at]);
  }

  function controlsOf(data, view, change) {
    const members = data.groups.flatMap((group) => group.members);
    const bar = element("form", { className: "controls", ariaLabel: "Choose what the picture shows" });
    bar.addEventListener("submit", (event) => event.preventDefault());
    const subjects = distinct(members.map((one) => one.subject));
    const baseline = choice("relative to", "what it was compared with", subjects, (value) =>
      change({ ...view(), baseline: value }),
    );
    const filters = data.filters.flatMap((name, at) => {
      const values = distinct(members.map((one) => one.choices[at]));
      if (values.length < 2) return [];
      const select = choice(name.replace("_", " "), "all", values, (value) => {
        const filters = new Map(view().filters);
        if (value) filters.set(name, value);
        else filters.delete(name);
        change({ ...view(), filters });
      });
      return [{ name, select }];
    });
    const reset = element("button", { type: "button", textContent: "as measured" });
    reset.addEventListener("click", () => change(emptyView()));
    bar.append(baseline.label, ...filters.map((one) => one.select.label), reset);
    return {
      element: bar,
      show(now) {
        baseline.select.value = now.baseline;
        filters.forEach(({ name, select }) => (select.select.value = now.filters.get(name) ?? ""));
        reset.disabled = !(now.baseline || now.filters.size);
      },
    };
  }

  function choice(name, nothing, values, chosen) {
    const select = element("select", { name });
    select.append(new Option(nothing, ""), ...values.map((value) => new Option(value, value)));
    select.addEventListener("change", () => chosen(select.value));
    const label = element("label", { textContent: name });
    label.append(select);
    return { select, label };
  }

  // ---- drawing, by the rules of report/forest.py

  function axisOf(ratios, margins) {
    const known = ratios.filter((one) => one.kind !== NONE);
    const points = [1, ...known.map((one) => one.estimate)];
    const ends = [...points];
    for (const margin of margins) ends.push(1 - margin, 1 + margin);
    for (const one of known) if (one.low !== null) ends.push(one.low, one.high);
    const least = (values) => values.reduce((a, b) => Math.min(a, b));
    const most = (values) => values.reduce((a, b) => Math.max(a, b));
    let low = Math.max(least(ends), least(points) / REACH);
    let high = Math.min(most(ends), most(points) * REACH);
    const room = Math.max((high / low) ** 0.05, 1.03);
    [low, high] = [low / room, high * room];
    const percent = (ratio) => {
      const share = Math.log(ratio / low) / Math.log(high / low);
      return Math.round(10000 * Math.min(Math.max(share, 0), 1)) / 100;
    };
    return { low, high, percent, ticks: ticksOf(low, high, percent) };
  }

  function ticksOf(low, high, percent) {
    const tenths = Array.from({ length: 90 }, (_, tenth) => 1 + tenth / 10);
    let ticks = [];
    for (const steps of [[1], [1, 3], [1, 2, 5], [1, 1.5, 2, 3, 5, 7], tenths]) {
      ticks = [];
      for (let decade = Math.floor(Math.log10(low)); decade <= Math.ceil(Math.log10(high)); decade += 1) {
        for (const step of steps) {
          const tick = Number((step * 10 ** decade).toPrecision(6));
          if (low <= tick && tick <= high) ticks.push(tick);
        }
      }
      if (ticks.length >= 3) break;
    }
    const kept = [1];
    for (const tick of ticks) {
      if (kept.every((other) => Math.abs(percent(tick) - percent(other)) >= APART)) kept.push(tick);
    }
    return kept.sort((a, b) => a - b);
  }

  function drawAxis(place, axis) {
    const ticks = axis.ticks.map((tick) => {
      const text = element("span", { textContent: tick.toLocaleString("en", { maximumFractionDigits: 6 }) });
      text.style.left = `${axis.percent(tick)}%`;
      return text;
    });
    place.replaceChildren(...ticks);
  }

  function drawRow({ row, group, place, to, ratio, look }, axis, usual, view) {
    const member = group.members[place];
    const kind = ratio ? ratio.kind : NONE;
    row.className = kind;
    const small = row.querySelector("small");
    const apart = member.details.filter((one) => !one.usual && !group.shared.includes(one.text));
    small.textContent = apart.map((one) => one.text).join(", ");
    const against = versus(member, group.members[to], view.baseline || usual);
    if (against) small.append(" ", element("i", { textContent: `vs ${against}` }));
    const [strip, numbers, verdict] = row.querySelectorAll("td");
    strip.replaceChildren(stripOf(ratio, group, look, axis));
    numbers.textContent = kind === NONE ? "" : ratio.text;
    verdict.className = `verdict ${kind}`;
    verdict.replaceChildren(glyph(kind), element("span", { textContent: ratio ? ratio.verdict : "not measured" }));
  }

  function versus(member, baseline, usual) {
    const own = new Set(member.details.map((one) => one.text));
    const parts = baseline.subject === usual ? [] : [baseline.subject];
    return [...parts, ...baseline.details.map((one) => one.text).filter((text) => !own.has(text))].join(", ");
  }

  function stripOf(ratio, group, look, axis) {
    const at = axis.percent;
    const parts = [band("margin", at(1 - group.margin), at(1 + group.margin))];
    if (group.control && group.control.low !== null) {
      const kind = excludes(group.control) ? "control restless" : "control";
      parts.push(band(kind, at(group.control.low), at(group.control.high)));
    }
    parts.push(shape("line", { class: "one", x1: `${at(1)}%`, x2: `${at(1)}%`, y1: "0", y2: "100%" }));
    if (ratio && ratio.kind !== NONE) {
      if (ratio.low !== null) {
        const ends = { x1: `${at(ratio.low)}%`, x2: `${at(ratio.high)}%` };
        parts.push(shape("line", { class: "interval", ...ends, y1: "50%", y2: "50%" }));
        if (ratio.low < axis.low) parts.push(shape("use", { class: "arrow", href: "#arrow-left", x: "0", y: "50%" }));
        if (ratio.high > axis.high) parts.push(shape("use", { class: "arrow", href: "#arrow-right", x: "100%", y: "50%" }));
      }
      const point = { class: "point", href: look.querySelector("use").getAttribute("href") };
      parts.push(shape("use", { ...point, x: `${at(ratio.estimate)}%`, y: "50%", style: look.getAttribute("style") }));
    }
    const strip = shape("svg", { class: "strip", "aria-hidden": "true" });
    strip.append(...parts);
    return strip;
  }

  function band(kind, start, end) {
    const width = Math.round(100 * (end - start)) / 100;
    return shape("rect", { class: kind, x: `${start}%`, width: `${width}%`, height: "100%" });
  }

  function glyph(kind) {
    const drawn = shape("svg", { class: "glyph", viewBox: "-6 -6 12 12", "aria-hidden": "true" });
    drawn.append(shape("use", { href: `#glyph-${kind}` }));
    return drawn;
  }

  function excludes({ low, high }) {
    return low > 1 || high < 1;
  }

  function cardOf({ group, ratio, place, to }) {
    const [member, baseline] = [group.members[place], group.members[to]];
    const facts = [
      ["condition", member.label],
      ["relative to", baseline.label],
    ];
    if (ratio) {
      facts.push(["throughput ratio", ratio.kind === NONE ? "none" : `${ratio.text} (95 % interval)`]);
      facts.push(["verdict", [ratio.verdict, ratio.reason].filter(Boolean).join(": ")]);
      facts.push(["processes", `${ratio.processes} pairs`]);
    }
    facts.push(["A/A", controlText(group)]);
    facts.push(["versions", distinct([member.versions, baseline.versions]).join(" | ")]);
    const knobs = member.knobs === baseline.knobs ? member.knobs : `${member.knobs} | baseline: ${baseline.knobs}`;
    facts.push(["knobs", knobs]);
    if (group.machine) facts.push(["machine", `${group.machine}`]);
    if (group.ended) facts.push(["ended", group.ended]);
    if (ratio && ratio.files.length) {
      facts.push(["behind it", `benchlib trace tables/report_ratios.csv ${ratio.key}`]);
      const more = ratio.files.length > 3 ? ` and ${ratio.files.length - 3} more` : "";
      facts.push(["measurements", ratio.files.slice(0, 3).join(" ") + more]);
    }
    const list = element("dl");
    for (const [name, value] of facts) {
      if (value) list.append(element("dt", { textContent: name }), element("dd", { textContent: value }));
    }
    return list;
  }

  function controlText(group) {
    const of = `of ${group.members[0].subject}`;
    if (!group.control) return `none ${of}${group.why ? `: ${group.why}` : ""}`;
    return `${group.control.text} ${of}${excludes(group.control) ? ", which excludes 1: believe nothing of that size" : ""}`;
  }

  // ---- tables that sort, and unfold on paper

  function sortTables() {
    for (const table of document.querySelectorAll("main table:not(.workload)")) {
      const body = table.tBodies[0];
      if (!table.tHead || !body || body.rows.length < 2) continue;
      [...table.tHead.rows[0].cells].forEach((head, column) => {
        if (!head.textContent.trim()) return;
        const button = element("button", { type: "button" });
        button.append(...head.childNodes);
        head.append(button);
        button.addEventListener("click", () => {
          const down = head.getAttribute("aria-sort") === "ascending";
          for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
          head.setAttribute("aria-sort", down ? "descending" : "ascending");
          const rows = [...body.rows].map((row) => ({ row, value: valueOf(row.cells[column].textContent) }));
          rows.sort((a, b) => (down ? -1 : 1) * compare(a.value, b.value));
          body.append(...rows.map((one) => one.row));
        });
      });
    }
  }

  function valueOf(text) {
    const number = parseFloat(text.replaceAll(",", ""));
    return Number.isNaN(number) ? text.trim() : number;
  }

  function compare(a, b) {
    if (typeof a === typeof b) return typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true });
    return typeof a === "number" ? -1 : 1;
  }

  function unfoldForPrint() {
    let folded = [];
    window.addEventListener("beforeprint", () => {
      folded = [...document.querySelectorAll("details:not([open])")];
      folded.forEach((one) => (one.open = true));
    });
    window.addEventListener("afterprint", () => folded.forEach((one) => (one.open = false)));
  }

  // ---- elements

  function element(name, properties = {}) {
    return Object.assign(document.createElement(name), properties);
  }

  function shape(name, attributes) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  }

  function distinct(values) {
    return [...new Set(values)].filter(Boolean);
  }
})();
