/* The playground: a question goes to every open side, and each answer is shown while it is made.
   Pieces are put in as text; what the server renders at the end is escaped there. */

const form = document.querySelector("form[data-playground]");
const announcer = document.getElementById("announcer");

/* Server-sent events out of a response's body, as [name, data]. */
async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const name = /^event: (.*)$/m.exec(block);
      const data = /^data: (.*)$/m.exec(block);
      if (name && data) yield [name[1], JSON.parse(data[1])];
    }
  }
}

async function refusalOf(response) {
  if (response.headers.get("Content-Type")?.includes("json")) return (await response.json()).message;
  return response.ok ? "You’re logged out. Reload the page." : `The server responded with ${response.status}. Reload the page and try again.`;
}

function finish(side, turn, ended) {
  const answer = turn.querySelector("[data-answer]");
  answer.innerHTML = ended.html;
  answer.removeAttribute("aria-busy");
  side.querySelector("[data-total]").innerHTML = ended.total;
  const read = document.querySelector(`[data-read="${side.dataset.side}"]`);
  read?.querySelectorAll("[data-bullet]").forEach((bullet) => {
    bullet.classList.toggle("cited", ended.cited.includes(bullet.dataset.bullet));
  });
  if (read && ended.cited.length) read.open = true;
  const rating = side.querySelector("[data-rating]");
  if (rating) rating.hidden = false;
}

/* Answers "" when the side has answered, else why it has not. */
async function ask(side, question, sent, signal) {
  const turn = form.parentElement.querySelector("template[data-turn]").content.firstElementChild.cloneNode(true);
  turn.querySelector(".question").append(question);
  const text = document.createTextNode("");
  turn.querySelector(".answer").append(text);
  side.querySelector("[data-empty]")?.remove();
  side.querySelector("[data-log]").append(turn);
  let why = "Connection lost. Reload the page to see what was saved.";
  try {
    const response = await fetch(side.dataset.stream, { method: "POST", body: sent, headers: { Accept: "text/event-stream" }, signal });
    if (!response.ok || !response.headers.get("Content-Type")?.includes("event-stream")) {
      why = await refusalOf(response);
    } else {
      for await (const [name, data] of eventsOf(response)) {
        if (name === "piece") text.appendData(data.text);
        if (name === "failed") why = data.message;
        if (name === "end") { finish(side, turn, data); return ""; }
      }
    }
  } catch {
    if (signal.aborted) why = "Stopped.";
  }
  turn.querySelector(".answer").classList.remove("live");
  turn.querySelector("[data-answer]").removeAttribute("aria-busy");
  const note = document.createElement("p");
  note.className = "small note warn";
  note.textContent = why;
  turn.append(note);
  return text.length ? "" : why;
}

if (form) {
  const field = form.querySelector("textarea");
  const [send, stop, refusal] = ["send", "stop", "refusal"].map((name) => form.querySelector(`[data-${name}]`));

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const question = field.value.trim();
    if (!question || send.disabled) return;
    const sent = new FormData(form);
    const leaving = new AbortController();
    const stopped = () => leaving.abort();
    stop.addEventListener("click", stopped);
    send.disabled = true;
    stop.hidden = false;
    refusal.hidden = true;
    field.value = "";
    const sides = [...document.querySelectorAll("[data-stream]")];
    const failed = (await Promise.all(sides.map((side) => ask(side, question, sent, leaving.signal)))).filter(Boolean);
    stop.removeEventListener("click", stopped);
    stop.hidden = true;
    send.disabled = false;
    if (failed.length && !field.value) field.value = question;
    if (failed.length === sides.length) {
      refusal.textContent = failed[0];
      refusal.hidden = false;
    } else {
      announcer.textContent = sides.length > 1 ? "The answers are complete" : "The answer is complete";
    }
    field.focus({ preventScroll: true });
  });

  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit();
  });
  form.dataset.playground = "ready";
}
