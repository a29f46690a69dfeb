/* The palette: the server finds, the arrows choose, Enter goes. */

const palette = document.getElementById("palette");

if (palette) {
  const field = palette.querySelector("input");
  const options = () => [...palette.querySelectorAll("[role=option]")];
  const current = () => palette.querySelector("[aria-selected=true]");

  function choose(option) {
    current()?.setAttribute("aria-selected", "false");
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    if (option) field.setAttribute("aria-activedescendant", option.id);
    else field.removeAttribute("aria-activedescendant");
  }

  /* showModal() and close() fire no event of their own for opening: watch the attribute. */
  new MutationObserver(() => {
    if (!palette.open) return;
    field.value = "";
    field.focus();
    field.dispatchEvent(new Event("palette-open"));
  }).observe(palette, { attributes: true, attributeFilter: ["open"] });

  palette.addEventListener("htmx:afterSettle", () => choose(options()[0]));

  field.addEventListener("keydown", (event) => {
    const all = options();
    const at = all.indexOf(current());
    const step = { ArrowDown: at + 1, ArrowUp: at - 1 + all.length, Home: 0, End: all.length - 1 }[event.key];
    if (event.key === "Enter") { event.preventDefault(); current()?.click(); }
    if (step === undefined || !all.length || (["Home", "End"].includes(event.key) && field.value)) return;
    event.preventDefault();
    choose(all[step % all.length]);
  });

  document.querySelectorAll("[data-palette]").forEach((link) => link.addEventListener("click", (event) => {
    event.preventDefault();
    palette.showModal();
  }));
}
