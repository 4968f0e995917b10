for (const box of document.querySelectorAll("input[data-rows]")) {
  const rows = [...document.getElementById(box.dataset.rows).tBodies[0].rows];
  const told = document.getElementById(box.getAttribute("aria-describedby"));
  // Marks above and below letters don't count, so that one need not type them.
  const simple = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  // A row is found by what it shows, and by names that would only fill it.
  const find = (row) => simple(`${row.textContent} ${row.dataset.find ?? ""}`);
  const texts = new Map(rows.map((row) => [row, find(row)]));
  const filter = () => {
    const words = simple(box.value).split(/\s+/);
    for (const row of rows) row.hidden = !words.every((word) => texts.get(row).includes(word));
    told.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} shown`;
  };
  box.addEventListener("input", filter);
  box.closest("[hidden]").hidden = false;
  if (box.value) filter();
}
