// Liftlock's console, made live. The pages work without this: told that something has changed,
// it fetches the page that is open and puts what differs in its place.
(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("js");
  const live = document.getElementById("live");
  const byId = (id) => document.getElementById(id);

  // How long ago things were, kept true without asking the server. It counts
  // from the server's clock, since the reader's may be wrong.
  const asOf = document.querySelector(".foot time");
  let server = asOf ? Date.parse(asOf.dateTime) : Date.now(), since = Date.now();
  const span = (s) => s < 60 ? `${Math.floor(s)} s` : s < 3600 ? `${Math.floor(s / 60)} min` : s < 172800 ? `${Math.floor(s / 3600)} h` : `${Math.floor(s / 86400)} d`;
  const age = () => {
    const now = server + (Date.now() - since);
    for (const t of document.querySelectorAll("time[data-ago]")) {
      const s = (now - Date.parse(t.dateTime)) / 1000;
      const text = s < 0 ? `in ${span(-s)}` : span(s);
      if (t.textContent !== text) t.textContent = text;
    }
  };
  setInterval(age, 5000);
  const setClock = (stamp) => {
    if (!asOf || !stamp) return;
    asOf.dateTime = stamp;
    asOf.textContent = `${stamp.slice(0, 10)} ${stamp.slice(11, 19)} UTC`;
    server = Date.parse(stamp);
    since = Date.now();
    age();
  };

  // What a text says, without how long ago it was.
  const said = (el) => {
    const copy = el.cloneNode(true);
    for (const t of copy.querySelectorAll("time")) t.remove();
    return copy.textContent;
  };

  // Makes the page what the server has sent. What a reader has open, chosen, written or stands on
  // stays; what is new is lit up.
  const become = (next, isNews) => {
    const at = document.activeElement, href = at && at.closest("main") ? at.getAttribute("href") : null;
    const lit = new Set();
    Idiomorph.morph(byId("main"), next, {
      ignoreActiveValue: true,
      callbacks: {
        beforeNodeMorphed: (old, to) => {
          if (old.nodeType !== Node.ELEMENT_NODE) return true;
          if (old.matches("select") || old.matches("time[data-ago]") && old.dateTime === to.dateTime) return false;
          if (old.matches(".cell, [data-list] > li, .list tbody tr") && said(old) !== said(to)) lit.add(old);
          return true;
        },
        afterNodeAdded: (el) => { if (el.nodeType === Node.ELEMENT_NODE && el.matches("[data-list] > *")) lit.add(el); },
        beforeAttributeUpdated: (name, el) => !(name === "open" && el.matches("details")) && name !== "value" && name !== "checked",
      },
    });
    if (href && (document.activeElement !== at || at.getAttribute("href") !== href)) {
      [...document.querySelectorAll("main a")].find((a) => a.getAttribute("href") === href)?.focus({ preventScroll: true });
    }
    if (isNews) for (const el of lit) {
      el.classList.remove("fresh");
      void el.offsetWidth;
      el.classList.add("fresh");
    }
  };

  // Fetches the page if it is another one than the one that is there. One fetch at a time; what
  // comes during one causes another.
  let running = false, again = false, tag = "", fetched = 0;
  const refresh = async (isNews) => {
    if (running) { again = true; return; }
    running = true;
    do {
      again = false;
      fetched = Date.now();
      try {
        const address = location.href;
        const res = await fetch(address, { headers: { Accept: "text/html", ...(tag && { "If-None-Match": tag }) }, cache: "no-store" });
        if (res.status === 401) { location.reload(); return; } // the session is over: the page leads to the login
        const text = await res.text();
        if (address !== location.href) { again = true; tag = ""; continue; }
        if (res.status !== 304) {
          const next = new DOMParser().parseFromString(text, "text/html");
          if (!next.querySelector("main")) throw new Error("this is no page of the console");
          become(next.querySelector("main"), isNews);
          tag = res.headers.get("ETag") || "";
          document.title = next.title || document.title;
          setClock(next.querySelector(".foot time")?.dateTime);
          from = next.body.dataset;
          version = from.version;
        }
        follow();
      } catch {
        later(2000 + Math.random() * 2000);
        say("Reconnecting…", true);
      }
    } while (again);
    running = false;
  };

  const say = (text, lost) => {
    if (!live) return;
    live.hidden = false;
    live.classList.toggle("lost", lost);
    if (live.textContent !== text) live.textContent = text;
  };

  // The stream of changes, while somebody may see the page. It goes on where it was cut off.
  let from = document.body.dataset, version = from.version, stream = null, followed = "", planned = 0;
  const later = (ms) => {
    planned ||= setTimeout(() => { planned = 0; refresh(true); }, ms);
  };
  const leave = () => {
    stream?.close();
    stream = null;
  };
  const follow = () => {
    if (document.hidden || stream && followed === from.stream && stream.readyState !== EventSource.CLOSED) return;
    leave();
    if (!from.stream) {
      if ("retry" in from) later(5000 + Math.random() * 2000); // an error's page: it may be over
      return;
    }
    followed = from.stream;
    const address = new URL(followed, location.href);
    address.searchParams.set("version", version || "");
    const own = stream = new EventSource(address);
    own.onopen = () => say("Live", false);
    own.onerror = () => {
      if (own !== stream) return;
      say("Reconnecting…", true);
      if (own.readyState === EventSource.CLOSED) later(10000 + Math.random() * 5000); // refused
    };
    own.addEventListener("changed", (e) => {
      version = e.lastEventId;
      // Spread out, so that a hundred open pages don't ask in the same moment, nor one all the time.
      if (own === stream) later(Math.max(Math.random() * 400, fetched + 1000 - Date.now()));
    });
  };
  addEventListener("pagehide", leave);
  addEventListener("pageshow", (e) => { if (e.persisted) refresh(true); });
  document.addEventListener("visibilitychange", () => document.hidden ? leave() : refresh(true));

  // Find as you type; the address stays right, so a filter can be shared.
  let typing = 0;
  const find = (form) => {
    const to = new URL(location.href);
    for (const name of ["q", "env", "state", "label", "sort"]) {
      const value = form.elements[name]?.value.trim();
      if (value && !(name === "sort" && value === "need")) to.searchParams.set(name, value); else to.searchParams.delete(name);
    }
    to.searchParams.delete("page");
    if (to.href === location.href) return;
    history.replaceState(null, "", to);
    tag = "";
    refresh(false);
  };
  document.addEventListener("submit", (e) => {
    if (!e.target.matches("form[data-find]")) return;
    e.preventDefault();
    find(e.target);
  });
  document.addEventListener("change", (e) => { if (e.target.matches("form[data-find] *")) find(e.target.form); });
  document.addEventListener("input", (e) => {
    if (!e.target.matches("form[data-find] #q")) return;
    clearTimeout(typing);
    typing = setTimeout(find, 150, e.target.form);
  });
  // The keys, which nobody needs who has a pointer or the tab key.
  const step = (by) => {
    const rows = [...document.querySelectorAll("main tbody th a")].filter((a) => a.offsetParent);
    rows[Math.min(Math.max(rows.indexOf(document.activeElement) + by, 0), rows.length - 1)]?.focus();
  };
  const keys = { "/": () => byId("q")?.focus(), j: () => step(1), k: () => step(-1), "?": () => byId("keys").showModal() };
  document.addEventListener("keydown", (e) => {
    if (!keys[e.key] || e.ctrlKey || e.metaKey || e.altKey || byId("keys").open) return;
    if (document.activeElement.matches("input, textarea, select")) return;
    e.preventDefault();
    keys[e.key]();
  });
  // A link may have a token for the form behind its #, which no server is sent.
  const token = new URLSearchParams(location.hash.slice(1)).get("token"), secret = byId("secret");
  if (token && secret) {
    secret.value = token;
    history.replaceState(null, "", location.pathname + location.search);
    secret.form.querySelector("button").focus();
  }
  byId("help").hidden = false;
  byId("help").addEventListener("click", keys["?"]);
  follow();
})();
