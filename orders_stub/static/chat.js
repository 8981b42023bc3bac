// What any shop adds to its pages: a queue for calls made before the widget has loaded,
// and a callback that fetches the signed-in customer's identity from the shop's own server.
window.countersign = window.countersign || function () { (window.countersign.q = window.countersign.q || []).push(arguments); };
countersign("identify", () => fetch("/identity").then(r => r.json()).then(b => b.token));

// Signing out of the shop also ends the chat.
document.addEventListener("submit", (event) => {
  if (event.target.matches("[data-sign-out]")) countersign("reset");
});
