/* Times stay fresh, and say exactly when in the reader's own zone on hover and focus. */

const STEPS = [["year", 31536000], ["month", 2592000], ["week", 604800], ["day", 86400], ["hour", 3600], ["minute", 60]];
const exact = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });
const zone = new Intl.DateTimeFormat().resolvedOptions().timeZone;
const brief = new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" });

/* The same words as config/templatetags/site.py. */
function ago(at) {
  const seconds = (Date.now() - at) / 1000;
  for (const [name, length] of STEPS) {
    const whole = Math.floor(Math.abs(seconds) / length);
    if (!whole) continue;
    // A time to come is rounded: 90 days less a moment are three months.
    const count = seconds > 0 ? whole : Math.round(-seconds / length);
    const text = `${count} ${name}${count > 1 ? "s" : ""}`;
    return seconds > 0 ? `${text} ago` : `in ${text}`;
  }
  return seconds >= 0 ? "just now" : "in a moment";
}

function exactTime(at) {
  const short = brief.formatToParts(at).find((part) => part.type === "timeZoneName")?.value ?? zone;
  return `${exact.format(at)} (${short})`;
}

function refresh() {
  document.querySelectorAll("time[datetime]").forEach((time) => {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.valueOf())) return;
    const words = ago(at);
    if (time.textContent !== words) time.textContent = words;
    if (!time.dataset.tip) {
      time.dataset.tip = exactTime(at);
      if (!time.closest("a, button, summary")) time.tabIndex = 0;
    }
  });
}

const tip = document.createElement("div");
tip.className = "tip";
tip.id = "tip";
tip.setAttribute("role", "tooltip");
tip.hidden = true;
document.body.append(tip);
let shown = null;

function show(target) {
  hide();
  shown = target;
  tip.textContent = target.dataset.tip;
  tip.hidden = false;
  target.setAttribute("aria-describedby", "tip");
  const place = target.getBoundingClientRect();
  const left = Math.min(place.left, innerWidth - tip.offsetWidth - 8);
  const above = place.top - tip.offsetHeight - 6;
  tip.style.left = `${Math.max(8, left)}px`;
  tip.style.top = `${above > 8 ? above : place.bottom + 6}px`;
}

function hide() {
  shown?.removeAttribute("aria-describedby");
  shown = null;
  tip.hidden = true;
}

for (const name of ["mouseover", "focusin"]) {
  document.addEventListener(name, (event) => {
    const target = event.target.closest?.("[data-tip]");
    if (target && target !== shown) show(target);
  });
}
for (const name of ["mouseout", "focusout"]) {
  document.addEventListener(name, (event) => { if (event.target.closest?.("[data-tip]") === shown) hide(); });
}
document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
addEventListener("scroll", hide, { passive: true, capture: true });

refresh();
setInterval(refresh, 30000);
document.addEventListener("htmx:afterSwap", refresh);
document.querySelectorAll("[data-zone]").forEach((place) => {
  place.textContent = `Times shown in ${zone.replaceAll("_", " ")}`;
});
