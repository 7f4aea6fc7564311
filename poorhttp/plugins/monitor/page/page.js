// Keeps the status page up to date: replaces what has changed by what the server sends.
"use strict";

const live = document.getElementById("live");
const state = document.getElementById("state");
const button = document.getElementById("pause");

// Without an event for so long, in milliseconds, the figures are marked as old. One that has said
// that it stops is asked as often.
const PATIENCE = 7000;

let source = null;
let latest = Date.now();
let stopped = false;
let paused = false;

// Makes `node` equal to `wanted`, and keeps elements that are there: selections, the focus and
// places of scrolling stay.
function update(node, wanted) {
  for (const { name } of [...node.attributes]) {
    if (!wanted.hasAttribute(name)) node.removeAttribute(name);
  }
  for (const { name, value } of wanted.attributes) {
    if (node.getAttribute(name) !== value) node.setAttribute(name, value);
  }
  updateChildren(node, wanted);
}

function updateChildren(node, wanted) {
  const children = [...node.childNodes];
  const others = [...wanted.childNodes];
  others.forEach((other, place) => {
    const child = children[place];
    if (!child) {
      node.append(other);
    } else if (child.nodeName !== other.nodeName) {
      child.replaceWith(other);
    } else if (child.nodeType === Node.TEXT_NODE) {
      if (child.data !== other.data) child.data = other.data;
    } else if (child.nodeType === Node.ELEMENT_NODE) {
      update(child, other);
    }
  });
  children.slice(others.length).forEach(child => child.remove());
}

function show(text, isOld) {
  if (state.textContent !== text) state.textContent = text;
  document.body.classList.toggle("old", isOld);
}

function receive(event) {
  latest = Date.now();
  stopped = false;
  const parsed = new DOMParser().parseFromString(JSON.parse(event.data), "text/html");
  updateChildren(live, parsed.body);
  if (event.type === "content") show("Live: updated every two seconds.", false);
  else show("The server does not answer.", true);
}

// The server has ended the stream because it stops; its figures stay, marked as old.
function end() {
  close();
  latest = Date.now();
  stopped = true;
  const pill = live.querySelector(".pill");
  pill?.classList.replace("good", "bad");
  pill?.replaceChildren("stopped");
  const time = new Date().toLocaleTimeString();
  show(`The server has stopped; these figures are from ${time}. Waiting for it to come back.`, true);
}

function open() {
  source = new EventSource("-/events");
  source.addEventListener("content", receive);
  source.addEventListener("silent", receive);
  source.addEventListener("stopped", end);
  // The browser would ask more often.
  source.addEventListener("error", () => stopped && close());
}

function close() {
  source?.close();
  source = null;
}

// A page that nobody sees asks for nothing.
function follow() {
  close();
  if (paused || document.hidden) return;
  latest = Date.now();
  open();
}

button.hidden = false;
button.addEventListener("click", () => {
  paused = !paused;
  button.textContent = paused ? "Resume" : "Pause";
  if (!stopped) show(paused ? "Paused." : "Connecting …", paused);
  follow();
});

document.addEventListener("visibilitychange", follow);

setInterval(() => {
  const silence = Date.now() - latest;
  if (paused || document.hidden || silence < PATIENCE) return;
  if (stopped) {
    follow();
    return;
  }
  show(`No answer for ${Math.round(silence / 1000)} s; these figures are old.`, true);
  // The browser gives up after some failures, such as a server that is replaced.
  if (source.readyState === EventSource.CLOSED) {
    close();
    open();
  }
}, 1000);

follow();
