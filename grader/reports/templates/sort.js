for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const head = button.closest("th"), body = head.closest("table").tBodies[0];
    const down = head.getAttribute("aria-sort") !== "descending" && head.classList.contains("number")
      || head.getAttribute("aria-sort") === "ascending";
    const key = (row) => row.cells[head.cellIndex].dataset.key ?? row.cells[head.cellIndex].textContent.trim();
    const order = (a, b) => key(a).localeCompare(key(b), undefined, { numeric: true });
    const rows = [...body.rows].sort((a, b) => (down ? order(b, a) : order(a, b)));
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    body.append(...rows);
  });
}
addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details")) folded.open = true;
});
