/* Small comforts only: every flow works without this file. */
"use strict";

document.querySelectorAll("[data-copy]").forEach((button) => {
  if (!navigator.clipboard) return;
  button.hidden = false;
  const label = button.textContent;
  button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copy);
    await navigator.clipboard.writeText(source.textContent);
    button.textContent = "Copied";
    document.getElementById("announcer").textContent = "Copied to the clipboard";
    setTimeout(() => { button.textContent = label; }, 2000);
  });
});

/* A form that has been sent once is not sent twice by a second click. */
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.dataset.sent) { event.preventDefault(); return; }
  if (form.method === "post" && !form.hasAttribute("hx-post")) form.dataset.sent = "yes";
});

/* Coming back with the browser's Back button finds the forms usable again. */
window.addEventListener("pageshow", () => {
  document.querySelectorAll("form[data-sent]").forEach((form) => { delete form.dataset.sent; });
});
