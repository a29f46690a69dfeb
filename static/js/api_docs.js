/* Swagger UI has a dark theme of its own, under a class: it follows the site's. */

const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");

function follow() {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : system.matches;
  root.classList.toggle("dark-mode", dark);
}

follow();
system.addEventListener("change", follow);
new MutationObserver(follow).observe(root, { attributeFilter: ["data-theme"] });

/* Its list of routes is a <main>, inside ours. */
const inside = document.getElementById("swagger-ui");
new MutationObserver(() => {
  inside.querySelector("main:not([role])")?.setAttribute("role", "group");
}).observe(inside, { childList: true, subtree: true });
