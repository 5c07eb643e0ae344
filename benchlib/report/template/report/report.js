// The report's page: choose among the ratios, sort tables. The page is complete without, and nothing is loaded or sent.
"use strict";

(() => {
  const ratios = document.querySelector(".ratios");
  if (ratios && ratios.querySelector("[data-workload]")) addFilters(ratios);
  document.querySelectorAll("main table:not(.workload)").forEach(makeSortable);

  // A choice for each attribute of the rows that has several values.
  function addFilters(section) {
    const rows = [...section.querySelectorAll("[data-workload]")];
    const names = [...rows[0].attributes].map((one) => one.name).filter((name) => name.startsWith("data-"));
    const form = element("form", { className: "controls", ariaLabel: "Choose rows" });
    const told = element("p", { className: "told", role: "status" });
    for (const name of names) {
      const values = [...new Set(rows.map((row) => row.getAttribute(name)))];
      if (values.length < 2) continue;
      const select = element("select", { name });
      select.append(new Option("all", ""), ...values.map((value) => new Option(value, value)));
      const label = element("label", { textContent: name.slice(5).replace("_", " ") });
      label.append(select);
      form.append(label);
    }
    form.addEventListener("change", () => {
      const chosen = [...new FormData(form)].filter(([, value]) => value);
      for (const row of rows) row.hidden = chosen.some(([name, value]) => row.getAttribute(name) !== value);
      for (const part of section.querySelectorAll(".workload, tbody")) {
        part.hidden = !part.querySelector("[data-workload]:not([hidden])");
      }
      const shown = rows.filter((row) => row.checkVisibility()).length;
      told.textContent = chosen.length ? `${shown} ratios are shown.` : "";
    });
    section.querySelector(".views").before(form, told);
  }

  function makeSortable(table) {
    const body = table.tBodies[0];
    if (!table.tHead || !body || body.rows.length < 2) return;
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      if (!head.textContent.trim()) return;
      const button = element("button", { type: "button" });
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...body.rows].map((row) => ({ row, text: row.cells[column].textContent.trim() }));
        rows.sort((a, b) => (down ? -1 : 1) * compare(a.text, b.text));
        body.append(...rows.map((one) => one.row));
      });
    });
  }

  function compare(a, b) {
    const [one, other] = [a, b].map((text) => parseFloat(text.replaceAll(",", "")));
    if (Number.isNaN(one) || Number.isNaN(other)) return a.localeCompare(b, "en", { numeric: true });
    return one - other;
  }

  function element(name, properties) {
    return Object.assign(document.createElement(name), properties);
  }
})();
