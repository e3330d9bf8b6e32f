// Liftlock's console, made live. The pages work without this: it only puts what
// has changed in place of what was there, as the server sends it.
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

  // What a reader has open or stands on stays so when its place is made anew.
  const keeping = (change) => {
    const open = [...document.querySelectorAll("main details[open][id]")].map((d) => d.id);
    const at = document.activeElement, field = at && at.id && at.matches("input, select") ? at.id : null;
    const href = at && at.closest("main") ? at.getAttribute("href") : null;
    const value = field ? at.value : null, caret = field && at.selectionStart;
    change();
    for (const id of open) byId(id)?.setAttribute("open", "");
    if (at && at.isConnected && at === document.activeElement) return;
    if (field && byId(field)) {
      const to = byId(field);
      to.value = value;
      to.focus({ preventScroll: true });
      if (caret !== null && to.setSelectionRange && to.type !== "date") to.setSelectionRange(caret, caret);
    } else if (href) {
      [...document.querySelectorAll("main a")].find((a) => a.getAttribute("href") === href)?.focus({ preventScroll: true });
    }
  };

  const made = (html) => {
    const t = document.createElement("template");
    t.innerHTML = html.trim();
    return t.content.firstElementChild;
  };
  const light = (el) => {
    el.classList.remove("fresh");
    void el.offsetWidth;
    el.classList.add("fresh");
  };

  // Puts what the server says has changed into the page.
  const apply = (patch) => keeping(() => {
    for (const [id, html] of Object.entries(patch.parts || {})) {
      const el = byId(id);
      if (el) el.innerHTML = html;
    }
    for (const list of patch.lists || []) {
      const parent = byId(list.id);
      if (!parent) continue;
      for (const id of list.gone || []) byId(id)?.remove();
      for (const put of list.put || []) {
        let el = byId(put.id);
        if (put.whole) {
          const fresh = made(put.whole);
          if (el) el.replaceWith(fresh);
          el = fresh;
          light(el);
        }
        if (!el) continue;
        for (const [n, html] of Object.entries(put.cells || {})) {
          const cell = made(html);
          el.children[n]?.replaceWith(cell);
          light(el);
        }
        const before = put.after ? byId(put.after) : null;
        if (before ? before.nextElementSibling !== el : parent.firstElementChild !== el) before ? before.after(el) : parent.prepend(el);
      }
    }
    if (patch.title) document.title = patch.title;
    setClock(patch.asOf);
  });

  // Fetches the page and puts it in place of what is there, where the changes
  // alone don't lead there. One fetch at a time; what comes during one causes another.
  let running = false, again = false;
  const refresh = async () => {
    if (running) { again = true; return; }
    running = true;
    do {
      again = false;
      try {
        const res = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
        if (res.status === 401) { location.reload(); return; } // the session is over: the page leads to the login
        const next = new DOMParser().parseFromString(await res.text(), "text/html");
        if (!next.querySelector("main")) throw new Error("this is no page of the console");
        if (again) continue;
        keeping(() => byId("main").replaceChildren(...next.querySelector("main").childNodes));
        document.title = next.title || document.title;
        setClock(next.querySelector(".foot time")?.dateTime);
        bind();
        follow(next.body.dataset);
      } catch {
        setTimeout(refresh, 2000 + Math.random() * 2000);
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

  // The stream of changes. It goes on where it was cut off; where that can't be,
  // the server says that the page is stale.
  let stream = null, retry = 0;
  const later = (ms) => { clearTimeout(retry); retry = setTimeout(refresh, ms); };
  const follow = (data) => {
    stream?.close();
    clearTimeout(retry);
    stream = null;
    if (!data.stream) {
      if ("retry" in data) later(5000 + Math.random() * 2000); // an error's page: it may be over
      return;
    }
    const own = stream = new EventSource(data.stream);
    own.onopen = () => say("Live", false);
    own.onerror = () => {
      say("Reconnecting…", true);
      if (own === stream && own.readyState === EventSource.CLOSED) later(10000 + Math.random() * 5000); // refused
    };
    own.addEventListener("patch", (e) => { if (own === stream) apply(JSON.parse(e.data)); });
    // Spread out, so that a hundred open pages don't ask in the same moment.
    own.addEventListener("stale", () => { if (own === stream) later(Math.random() * 400); });
  };
  addEventListener("pagehide", () => stream?.close());
  addEventListener("pageshow", (e) => { if (e.persisted) refresh(); });

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
    refresh();
  };
  const bind = () => {
    const form = document.querySelector("form[data-find]");
    if (!form) return;
    form.addEventListener("submit", (e) => { e.preventDefault(); find(form); });
    form.addEventListener("change", () => find(form));
    form.elements.q.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(find, 150, form); });
  };
  document.addEventListener("keydown", (e) => {
    const q = byId("q");
    if (q && e.key === "/" && !e.ctrlKey && !e.metaKey && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) {
      e.preventDefault();
      q.focus();
    }
  });
  bind();
  follow(document.body.dataset);
})();
