/* Menus close when focus moves away; dialogs open from [data-open]; bars of links that
   scroll sideways begin at the current one, and say at which edge there is more. */

const open = () => document.querySelectorAll("details.menu[open]");

document.addEventListener("click", (event) => {
  open().forEach((menu) => { if (!menu.contains(event.target)) menu.open = false; });
  const button = event.target.closest("[data-open]");
  if (!button) return;
  const dialog = document.getElementById(button.dataset.open);
  if (!dialog) return;
  event.preventDefault();
  const menu = button.closest("details.menu");
  if (menu) {
    /* The menu's own button takes the focus back: what is inside will be hidden by then. */
    menu.querySelector("summary").focus();
    menu.open = false;
  }
  dialog.showModal();
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  open().forEach((menu) => {
    if (!menu.contains(document.activeElement)) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
});

document.addEventListener("focusin", (event) => {
  open().forEach((menu) => { if (!menu.contains(event.target)) menu.open = false; });
});

/* A click on the veil closes a dialog. */
document.addEventListener("click", (event) => {
  if (event.target.matches?.("dialog[open]")) {
    const box = event.target.getBoundingClientRect();
    const inside = event.clientX >= box.left && event.clientX <= box.right && event.clientY >= box.top && event.clientY <= box.bottom;
    if (!inside) event.target.close();
  }
});

for (const bar of document.querySelectorAll(".site-nav, .tabs")) {
  const here = bar.querySelector("[aria-current]")?.getBoundingClientRect();
  const frame = bar.getBoundingClientRect();
  if (here) bar.scrollLeft += here.left + here.width / 2 - frame.left - frame.width / 2;
  const mark = () => {
    bar.classList.toggle("more-before", bar.scrollLeft > 4);
    bar.classList.toggle("more-after", bar.scrollLeft + bar.clientWidth < bar.scrollWidth - 4);
  };
  bar.addEventListener("scroll", mark, { passive: true });
  new ResizeObserver(mark).observe(bar);
}
