/* Toasts dismiss themselves, later if they offer an action, and not while hovered or focused. */

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

/* A failed htmx request is reported once; a polling page takes
   it back with the next answer. */
const SILENT = "Can’t reach the server. This page may be out of date; it retries automatically.";
const REFUSED = "Your request failed. Reload the page and try again.";

function showToast(words) {
  if ([...list.children].some((toast) => toast.dataset.text === words)) return;
  const toast = document.createElement("div");
  toast.className = "toast note bad";
  toast.dataset.text = words;
  const text = document.createElement("span");
  text.textContent = words;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "small";
  button.dataset.dismiss = "";
  button.textContent = "Close";
  toast.append(text, button);
  list.append(toast);
}

const asksAgain = (event) => event.target.closest?.("[hx-trigger*='every']");

if (list) {
  for (const name of ["htmx:sendError", "htmx:responseError", "htmx:timeout"]) {
    document.addEventListener(name, (event) => showToast(asksAgain(event) ? SILENT : REFUSED));
  }
  document.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.successful) list.querySelectorAll(`[data-text="${SILENT}"]`).forEach((toast) => toast.remove());
  });
}
