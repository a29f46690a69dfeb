/* Keys: Ctrl+K the palette, / the search, ? the list of keys. Single keys can be switched off. */

const OFF = "single-keys-off";
const dialog = document.getElementById("shortcuts");
const palette = document.getElementById("palette");

function isTyping(target) {
  return target.matches?.("input, textarea, select, [contenteditable]") && !target.matches("[type=checkbox], [type=radio]");
}

function search() {
  const field = [...document.querySelectorAll("[data-search]")].find((one) => one.offsetParent);
  if (field) { field.focus(); field.select(); } else palette?.showModal();
}

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.key.toLowerCase() === "k" && palette) {
    event.preventDefault();
    if (palette.open) palette.close();
    else if (!document.querySelector("dialog[open]")) palette.showModal();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  if (document.querySelector("dialog[open]") || localStorage.getItem(OFF)) return;
  if (event.key === "/") { event.preventDefault(); search(); }
  if (event.key === "?" && dialog) { event.preventDefault(); dialog.showModal(); }
});

const off = document.getElementById("single-keys");
if (off) {
  off.checked = !localStorage.getItem(OFF);
  off.addEventListener("change", () => {
    if (off.checked) localStorage.removeItem(OFF);
    else localStorage.setItem(OFF, "yes");
  });
}
