/* The theme changes without a new page; the server keeps the choice in a cookie. */

const root = document.documentElement;

async function choose(form, theme) {
  const sent = new FormData(form);
  sent.set("theme", theme);
  /* "manual": the response redirects to this page, which need not be fetched again. */
  const answer = await fetch(form.action, { method: "POST", body: sent, redirect: "manual" });
  if (answer.type !== "opaqueredirect") { form.submit(); return; }
  if (theme === "system") delete root.dataset.theme;
  else root.dataset.theme = theme;
  document.querySelector("meta[name=color-scheme]").content = theme === "system" ? "light dark" : theme;
  document.querySelectorAll("form.theme button").forEach((button) => {
    button.setAttribute("aria-pressed", String(button.value === theme));
  });
  document.getElementById("announcer").textContent = `Theme: ${theme}`;
}

document.addEventListener("submit", (event) => {
  if (!event.target.matches("form.theme")) return;
  event.preventDefault();
  choose(event.target, event.submitter.value);
});

document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-theme-choice]");
  const form = link && document.querySelector("form.theme");
  if (!form) return;
  event.preventDefault();
  link.closest("dialog")?.close();
  choose(form, link.dataset.themeChoice);
});
