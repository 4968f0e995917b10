for (const box of document.querySelectorAll("input[data-rows]")) {
  const rows = [...document.getElementById(box.dataset.rows).tBodies[0].rows];
  const summary = document.getElementById(box.getAttribute("aria-describedby"));
  // Ignore accents, so that users need not type them.
  const simple = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  // Search the text of a row, and names that the row does not show.
  const find = (row) => simple(`${row.textContent} ${row.dataset.find ?? ""}`);
  const texts = new Map(rows.map((row) => [row, find(row)]));
  const filter = () => {
    const words = simple(box.value).split(/\s+/);
    for (const row of rows) row.hidden = !words.every((word) => texts.get(row).includes(word));
    summary.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} shown`;
  };
  box.addEventListener("input", filter);
  box.closest("[hidden]").hidden = false;
  if (box.value) filter();
}
