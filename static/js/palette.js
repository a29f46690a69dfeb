/* The palette: the server finds, the arrows choose, Enter goes. */

const palette = document.getElementById("palette");

if (palette) {
  const field = palette.querySelector("input");
  const options = () => [...palette.querySelectorAll("[role=option]")];
  const current = () => palette.querySelector("[aria-selected=true]");
  /* The option chosen with the arrows since the last input: a later response keeps it selected. */
  let wanted = null;
  /* For which words there are answers, and whether Enter came before those for the last ones. */
  let answered = null;
  let entered = false;

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
    wanted = answered = null;
    entered = false;
    field.focus();
    field.dispatchEvent(new Event("palette-open"));
  }).observe(palette, { attributes: true, attributeFilter: ["open"] });

  field.addEventListener("input", () => { wanted = null; entered = false; });
  palette.addEventListener("htmx:afterSettle", (event) => {
    const all = options();
    answered = event.detail.requestConfig.parameters.q;
    choose(all.find((option) => option.textContent === wanted) ?? all[0]);
    if (entered && answered === field.value) current()?.click();
  });

  field.addEventListener("keydown", (event) => {
    const all = options();
    const at = Math.max(all.indexOf(current()), 0);
    const step = { ArrowDown: at + 1, ArrowUp: at - 1 + all.length, Home: 0, End: all.length - 1 }[event.key];
    if (event.key === "Enter") {
      event.preventDefault();
      if (answered === field.value) current()?.click();
      else entered = true;
    }
    if (step === undefined || !all.length || (["Home", "End"].includes(event.key) && field.value)) return;
    event.preventDefault();
    choose(all[step % all.length]);
    wanted = current().textContent;
  });

  document.querySelectorAll("[data-palette]").forEach((link) => link.addEventListener("click", (event) => {
    event.preventDefault();
    palette.showModal();
  }));
}
