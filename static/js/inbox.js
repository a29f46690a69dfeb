/* Keys of the inbox: j and k move, x selects, a approves or retries, d declines or dismisses. */

const items = [...document.querySelectorAll("[data-item]")];
const focused = () => items.indexOf(document.activeElement?.closest("[data-item]"));
const isTyping = (target) => target.matches?.("input:not([type=checkbox]), textarea, select, [contenteditable]");

if (location.hash === "#next") {
  history.replaceState(null, "", location.pathname);
  items[0]?.focus();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  if (document.querySelector("dialog[open]") || localStorage.getItem("single-keys-off")) return;
  const at = focused();
  if (event.key === "j") items[Math.min(at + 1, items.length - 1)]?.focus();
  if (event.key === "k") items[Math.max(at - 1, 0)]?.focus();
  if (at < 0) return;
  if (event.key === "x") items[at].querySelector("[type=checkbox]")?.click();
  if (event.key === "a" || event.key === "d") items[at].querySelector(`[data-key=${event.key}]`)?.click();
});
