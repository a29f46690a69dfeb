/* Forms: sent once; selects of a filter bar act at once; folds that hold a mistake are open. */

const AGAIN = 10000;

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.method !== "post" || form.matches("[hx-post], .theme")) return;
  if (form.dataset.sent) { event.preventDefault(); return; }
  form.dataset.sent = "yes";
  /* A file as the answer leaves the page where it is: after a while it can be asked for again. */
  setTimeout(() => { delete form.dataset.sent; }, AGAIN);
});

/* Coming back with the browser's Back button finds the forms usable again. */
window.addEventListener("pageshow", () => {
  document.querySelectorAll("form[data-sent]").forEach((form) => { delete form.dataset.sent; });
});

document.addEventListener("change", (event) => {
  const form = event.target.closest("form.filter-bar");
  if (form && event.target.matches("select")) form.requestSubmit();
});

/* A form that opened inside a list: Cancel and Escape close it and give the focus back. */
function close(edit) {
  const row = edit.closest("[data-row]");
  edit.remove();
  row?.querySelector("[data-edit]")?.focus();
}

document.addEventListener("click", (event) => {
  const cancel = event.target.closest("[data-cancel]");
  const edit = cancel?.closest("[data-editor]");
  if (!edit) return;
  event.preventDefault();
  close(edit);
});

document.addEventListener("keydown", (event) => {
  const edit = event.key === "Escape" && event.target.closest("[data-editor]");
  if (edit) close(edit);
});

/* The server says what to focus after it replaced a part of the page. */
document.addEventListener("ace:focus", (event) => {
  /* A row that is gone leaves the focus at the list that it was in. */
  const row = document.getElementById(event.detail.value) || document.getElementById("bullets-list");
  const target = row?.querySelector(":scope > .tools > [data-edit]") || row;
  if (!target) return;
  if (target === row) row.tabIndex = -1;
  target.focus({ preventScroll: true });
  if (!row.matches(".bullet")) return;
  row.scrollIntoView({ block: "nearest" });
  row.classList.add("fresh");
});
