/* Toasts leave by themselves, later when they offer something; not while somebody is on them. */

const REST = 6000, WITH_A_CHOICE = 15000;
const list = document.getElementById("toasts");

function leave(toast) {
  if (!toast.isConnected) return;
  if (toast.matches(":hover, :focus-within")) { wait(toast, REST); return; }
  toast.classList.add("leaving");
  setTimeout(() => toast.remove(), 200);
}

function wait(toast, time) {
  setTimeout(() => leave(toast), time);
}

function take(toast) {
  if (toast.dataset.seen) return;
  toast.dataset.seen = "yes";
  if (!toast.classList.contains("bad")) wait(toast, toast.querySelector("form") ? WITH_A_CHOICE : REST);
}

if (list) {
  new MutationObserver(() => list.querySelectorAll(".toast").forEach(take)).observe(list, { childList: true });
  /* A live region says what comes into it, not what it began with: put it in again. */
  const first = [...list.children];
  list.replaceChildren();
  setTimeout(() => list.append(...first), 100);
  list.addEventListener("click", (event) => {
    const button = event.target.closest("[data-dismiss]");
    if (!button) return;
    button.closest(".toast").remove();
    document.getElementById("main").focus({ preventScroll: true });
  });
}

/* What htmx could not do is said, not swallowed. */
for (const name of ["htmx:sendError", "htmx:responseError", "htmx:timeout"]) {
  document.addEventListener(name, (event) => {
    if (event.detail.requestConfig?.verb === "get" && name !== "htmx:responseError") return;
    const toast = document.createElement("div");
    toast.className = "toast note bad";
    const text = document.createElement("span");
    text.textContent = "That did not reach the server, or it refused. Reload the page, then try again.";
    toast.append(text);
    list?.append(toast);
  });
}
