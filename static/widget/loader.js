/* The chat on a shop's page: a button, and a frame with the chat in it.
   One global, `countersign`; no dependency; nothing inline, so that a strict policy of the page's
   own lets it work. The frame is made when it is first wanted. */
(function () {
  "use strict";

  var script = document.currentScript;
  var waiting = window.countersign;
  if (!script || (waiting && waiting.isLoaded)) return;

  var ORIGIN = new URL(script.src).origin;
  var KEY = script.getAttribute("data-widget-key") || "";
  var NARROW = "(max-width:668px),(max-height:480px)";
  var SEEN_BEFORE = "countersign:" + KEY;
  var TEXTS = {
    en: { open: "Open chat", close: "Close chat", panel: "Chat with us", unread: "unread" },
    de: { open: "Chat öffnen", close: "Chat schließen", panel: "Chat mit uns", unread: "ungelesen" },
  };
  var STYLE =
    ":host{all:initial;position:fixed;inset:0;pointer-events:none;z-index:2147483000;" +
    "font:16px/1.4 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;" +
    "--accent:#0f5c56;--accent-ink:#fff;--edge:rgb(0 0 0/8%)}" +
    ":host([hidden]){display:none}" +
    ":host([data-look=dark]){--accent:#74cdc1;--accent-ink:#08211e;--edge:rgb(255 255 255/14%)}" +
    "@media(prefers-color-scheme:dark){:host([data-look=auto])" +
    "{--accent:#74cdc1;--accent-ink:#08211e;--edge:rgb(255 255 255/14%)}}" +
    "*{box-sizing:border-box}[hidden]{display:none!important}" +
    ".launcher{pointer-events:auto;position:absolute;inset-inline-end:20px;" +
    "inset-block-end:calc(20px + env(safe-area-inset-bottom,0px));inline-size:56px;" +
    "block-size:56px;padding:0;border:0;border-radius:50%;cursor:pointer;" +
    "background:var(--accent);color:var(--accent-ink);display:grid;place-items:center;" +
    "box-shadow:0 2px 6px rgb(0 0 0/16%),0 8px 24px rgb(0 0 0/18%);transition:transform .16s ease}" +
    ".launcher:hover{transform:translateY(-2px)}.launcher:active{transform:none}" +
    ".launcher:focus-visible{outline:3px solid var(--accent);outline-offset:3px}" +
    ".launcher svg{inline-size:26px;block-size:26px}" +
    ".is-open .when-closed,div:not(.is-open)>.launcher .when-open{display:none}" +
    ".badge{position:absolute;inset-block-start:-4px;inset-inline-end:-4px;min-inline-size:22px;" +
    "block-size:22px;padding:0 6px;border-radius:11px;background:#b3261e;color:#fff;" +
    "font:600 13px/22px system-ui,sans-serif;text-align:center}" +
    ".panel{pointer-events:auto;position:absolute;inset-block-end:92px;inset-inline-end:20px;" +
    "inline-size:400px;block-size:min(680px,calc(100dvh - 116px));border-radius:18px;" +
    "overflow:hidden;background:Canvas;box-shadow:0 0 0 1px var(--edge)," +
    "0 4px 16px rgb(0 0 0/12%),0 24px 64px rgb(0 0 0/22%);transform-origin:100% 100%}" +
    ".panel.is-coming{animation:come .18s ease-out}" +
    "@keyframes come{from{opacity:0;transform:translateY(12px) scale(.98)}}" +
    "iframe{display:block;inline-size:100%;block-size:100%;border:0;color-scheme:normal}" +
    "@media " + NARROW + "{.panel{inset:var(--above,0) 0 auto;inline-size:auto;" +
    "block-size:var(--visible,100dvh);border-radius:0;box-shadow:none;" +
    "padding:env(safe-area-inset-top) env(safe-area-inset-right) env(safe-area-inset-bottom) " +
    "env(safe-area-inset-left)}" +
    ".is-open .launcher{display:none}}" +
    "@media(prefers-reduced-motion:reduce){.launcher,.panel{animation:none!important;" +
    "transition:none!important}}" +
    "@media print{:host{display:none}}";

  var host, root, wrap, launcher, badge, panel, frame;
  var isOpen = false, isHidden = false, isReady = false;
  var identify = null, locale = "", theme = "auto", unread = 0;
  var later = [], early = [];
  var handlers = {};

  function emit(event, detail) {
    (handlers[event] || []).slice().forEach(function (handler) {
      try {
        handler(detail);
      } catch (error) {
        setTimeout(function () { throw error; });
      }
    });
  }

  function language() {
    return (locale || document.documentElement.lang || navigator.language || "en").toLowerCase();
  }

  function text(name) {
    return (TEXTS[language().split("-")[0]] || TEXTS.en)[name];
  }

  function remember(value) {
    try {
      if (value === undefined) return localStorage.getItem(SEEN_BEFORE);
      if (value) localStorage.setItem(SEEN_BEFORE, value);
      else localStorage.removeItem(SEEN_BEFORE);
    } catch { /* a page may forbid storage: the badge then waits for the first opening */ }
    return null;
  }

  function element(name, className) {
    var made = document.createElement(name);
    if (className) made.className = className;
    return made;
  }

  function icon(className, path) {
    var svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    var line = document.createElementNS("http://www.w3.org/2000/svg", "path");
    svg.setAttribute("viewBox", "0 0 24 24");
    svg.setAttribute("aria-hidden", "true");
    svg.setAttribute("class", className);
    [["d", path], ["fill", "none"], ["stroke", "currentColor"], ["stroke-width", "1.8"],
      ["stroke-linecap", "round"], ["stroke-linejoin", "round"]].forEach(function (pair) {
      line.setAttribute(pair[0], pair[1]);
    });
    svg.appendChild(line);
    return svg;
  }

  function build() {
    host = element("countersign-chat");
    root = host.attachShadow({ mode: "open" });
    var sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    root.adoptedStyleSheets = [sheet];
    wrap = element("div");
    panel = element("div", "panel");
    panel.id = "panel";
    panel.hidden = true;
    panel.setAttribute("role", "dialog");
    launcher = element("button", "launcher");
    launcher.type = "button";
    launcher.setAttribute("aria-controls", "panel");
    launcher.appendChild(icon("when-closed",
      "M12 4c-4.7 0-8.5 3.2-8.5 7.2 0 2.2 1.2 4.2 3.1 5.5L6 20.5l4-2.3c.6.1 1.3.2 2 .2 4.7 0 " +
      "8.5-3.2 8.5-7.2S16.7 4 12 4Z M8.5 11.2h.01 M12 11.2h.01 M15.5 11.2h.01"
    ));
    launcher.appendChild(icon("when-open", "M6 9.5l6 6 6-6"));
    badge = element("span", "badge");
    badge.hidden = true;
    badge.setAttribute("aria-hidden", "true");
    launcher.appendChild(badge);
    launcher.addEventListener("click", api.toggle);
    host.addEventListener("keydown", onKey);
    wrap.append(panel, launcher);
    root.appendChild(wrap);
    document.body.appendChild(host);
    if (window.visualViewport) {
      visualViewport.addEventListener("resize", fit);
      visualViewport.addEventListener("scroll", fit);
    }
    show();
    if (remember()) makeFrame();
  }

  function show() {
    if (!host) return;
    var count = unread > 9 ? "9+" : String(unread);
    var label = text(isOpen ? "close" : "open");
    host.dataset.look = theme;
    host.hidden = isHidden;
    wrap.className = isOpen ? "is-open" : "";
    panel.hidden = !isOpen;
    panel.setAttribute("aria-label", text("panel"));
    badge.hidden = isOpen || !unread;
    badge.textContent = count;
    launcher.setAttribute("aria-expanded", String(isOpen));
    launcher.setAttribute("aria-label", badge.hidden ? label : label + ", " + count + " " + text("unread"));
    if (frame) frame.title = text("panel");
  }

  /* A phone's keyboard covers the page without making it smaller, and may push it up; keep to what
     is left in view. */
  function fit() {
    if (visualViewport.scale !== 1) return;
    panel.style.setProperty("--visible", visualViewport.height + "px");
    panel.style.setProperty("--above", visualViewport.offsetTop + "px");
  }

  function makeFrame() {
    if (frame) return;
    frame = element("iframe");
    frame.title = text("panel");
    frame.allow = "";
    frame.src = ORIGIN + "/widget/?key=" + encodeURIComponent(KEY);
    frame.addEventListener("load", function () {
      isReady = false;
      post({ type: "init", locale: language(), theme: theme, isOpen: isOpen, canIdentify: !!identify });
    });
    panel.appendChild(frame);
  }

  /* To our own frame, and to nobody who may have taken its place. */
  function post(message) {
    if (frame && frame.contentWindow) frame.contentWindow.postMessage({ countersign: message }, ORIGIN);
  }

  function tell(message) {
    if (isReady) post(message);
    else later.push(message);
  }

  window.addEventListener("message", function (event) {
    if (!frame || event.source !== frame.contentWindow || event.origin !== ORIGIN) return;
    var message = event.data && event.data.countersign;
    if (message && Object.hasOwn(FROM_FRAME, message.type)) FROM_FRAME[message.type](message);
  });

  var FROM_FRAME = {
    ready: function () {
      isReady = true;
      later.splice(0).forEach(post);
      emit("ready");
    },
    identify: function (message) {
      /* A callback that fails, on a bad line for instance, does not say that nobody is signed in. */
      function answer(token, isUnknown) {
        post({ type: "token", id: message.id, token: typeof token === "string" ? token : null, isUnknown: isUnknown });
      }
      Promise.resolve()
        .then(function () { return identify ? identify() : null; })
        .then(function (token) { answer(token, false); }, function () { answer(null, true); });
    },
    close: function () { api.close(); },
    used: function () { remember("1"); },
    unread: function (message) {
      unread = Math.max(0, Number(message.count) || 0);
      show();
      emit("unread", unread);
    },
    message: function (message) { emit("message", { author: String(message.author) }); },
    error: function (message) { emit("error", { code: String(message.code) }); },
    authExpired: function () { emit("authExpired"); },
  };

  function onKey(event) {
    if (event.key === "Escape" && isOpen) {
      event.stopPropagation();
      api.close();
    }
  }

  var api = {
    open: function () {
      if (!host) early.push(["open"]);
      if (isOpen || isHidden || !host) return;
      makeFrame();
      isOpen = true;
      show();
      panel.classList.add("is-coming");
      frame.focus();
      tell({ type: "opened" });
      emit("open");
    },
    close: function () {
      if (!isOpen) return;
      var hadFocus = root.activeElement !== null;
      isOpen = false;
      show();
      tell({ type: "closed" });
      if (hadFocus) launcher.focus();
      emit("close");
    },
    toggle: function () { (isOpen ? api.close : api.open)(); },
    show: function () { isHidden = false; show(); },
    hide: function () { api.close(); isHidden = true; show(); },
    identify: function (callback) {
      identify = typeof callback === "function" ? callback : null;
      // A frame still to come asks by itself, unless it will first be told to forget everybody.
      if (isReady || later.some(function (message) { return message.type === "reset"; }))
        tell({ type: "identity", canIdentify: !!identify });
    },
    reset: function () {
      identify = null;
      unread = 0;
      api.close();
      remember("");
      tell({ type: "reset" });
      show();
    },
    setLocale: function (value) {
      locale = String(value || "");
      if (isReady) post({ type: "locale", locale: language() });
      show();
    },
    setTheme: function (value) {
      theme = value === "light" || value === "dark" ? value : "auto";
      if (isReady) post({ type: "theme", theme: theme });
      show();
    },
    prefill: function (value) { tell({ type: "prefill", text: String(value).slice(0, 4000) }); },
    on: function (event, handler) {
      if (typeof handler === "function") (handlers[event] = handlers[event] || []).push(handler);
    },
    off: function (event, handler) {
      handlers[event] = (handlers[event] || []).filter(function (known) { return known !== handler; });
    },
  };

  function countersign(method) {
    if (!Object.hasOwn(api, method)) throw new Error("countersign has no method " + method);
    return api[method].apply(null, Array.prototype.slice.call(arguments, 1));
  }
  countersign.isLoaded = true;
  window.countersign = countersign;

  function start() {
    build();
    ((waiting && waiting.q) || []).concat(early).forEach(function (call) { countersign.apply(null, call); });
  }
  if (document.body) start();
  else document.addEventListener("DOMContentLoaded", start);
})();
