"use strict";

// A link may lead into something that is folded.
function unfold() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let at = target; at; at = at.parentElement) {
    if (at.tagName === "DETAILS") at.open = true;
  }
  target.scrollIntoView({ block: "center" });
}

addEventListener("hashchange", unfold);
addEventListener("beforeprint", () => fold(true));
unfold();

function fold(open) {
  for (const frame of document.querySelectorAll("details.frame")) frame.open = open;
}

for (const button of document.querySelectorAll("button[data-open]")) {
  button.addEventListener("click", () => fold(button.dataset.open === "yes"));
}
