/* Buttons that copy: <button data-copy="id of the text">, with data-before and data-after around it. */

const announcer = document.getElementById("announcer");

async function copy(button) {
  const { copy: id, before = "", after = "" } = button.dataset;
  const text = before + document.getElementById(id).textContent + after;
  const label = button.innerHTML;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    announcer.textContent = "Your browser blocked copying";
    return;
  }
  button.textContent = "Copied";
  announcer.textContent = "Copied to clipboard";
  setTimeout(() => { button.innerHTML = label; }, 2000);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (button && navigator.clipboard) copy(button);
});
document.querySelectorAll("[data-copy]").forEach((button) => { button.hidden = !navigator.clipboard; });
