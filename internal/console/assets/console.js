// Liftlock's console, made live. The pages work without this: it only fetches
// the page again when the server says that something has changed, and puts the
// parts marked data-live in place of the old ones.
(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("js");
  const live = document.getElementById("live");

  // How long ago things were, kept true without asking the server. It counts
  // from the server's clock, since the reader's may be wrong.
  const loaded = Date.now();
  const asOf = document.querySelector(".foot time");
  let server = asOf ? Date.parse(asOf.dateTime) : loaded, since = loaded;
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

  // Replaces the live parts by those of the page as it is now.
  const swap = (next) => {
    for (const part of document.querySelectorAll("[data-live]")) {
      const fresh = next.getElementById(part.id);
      if (!fresh || fresh.innerHTML === part.innerHTML) continue;
      const open = [...part.querySelectorAll("details[open][id]")].map((d) => d.id);
      const focused = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
      const old = new Map([...part.querySelectorAll("tr[id]")].map((r) => [r.id, r.textContent]));
      part.replaceChildren(...fresh.childNodes);
      for (const id of open) document.getElementById(id)?.setAttribute("open", "");
      for (const row of part.querySelectorAll("tr[id]")) {
        if (old.has(row.id) && strip(old.get(row.id)) !== strip(row.textContent)) row.classList.add("fresh");
      }
      if (focused) [...part.querySelectorAll("a")].find((a) => a.getAttribute("href") === focused)?.focus({ preventScroll: true });
    }
    const time = next.querySelector(".foot time");
    if (time && asOf) {
      asOf.dateTime = time.dateTime;
      asOf.textContent = time.textContent;
      server = Date.parse(time.dateTime);
      since = Date.now();
    }
    document.title = next.title || document.title;
    age();
  };
  // Passing time alone is no news.
  const strip = (s) => s.replace(/\d+ (s|min|h|d)\b/g, "").replace(/\s+/g, " ");

  // One fetch at a time; what comes during one causes another.
  let running = false, again = false;
  const refresh = async () => {
    if (running) { again = true; return; }
    running = true;
    do {
      again = false;
      try {
        const res = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
        swap(new DOMParser().parseFromString(await res.text(), "text/html"));
      } catch {
        // The stream says when the server is back; then the page is fetched again.
      }
    } while (again);
    running = false;
  };
  // Spread out, so that a hundred open pages don't ask in the same moment.
  let timer = 0;
  const soon = () => {
    if (document.hidden || timer) return;
    timer = setTimeout(() => { timer = 0; refresh(); }, 150 + Math.random() * 350);
  };
  document.addEventListener("visibilitychange", () => { if (!document.hidden) soon(); });

  // The stream of events.
  const say = (text, lost) => {
    if (!live) return;
    live.hidden = false;
    live.classList.toggle("lost", lost);
    if (live.textContent !== text) live.textContent = text;
  };
  const listen = () => {
    const stream = new EventSource(document.body.dataset.events);
    stream.onopen = () => {
      say("Live", false);
      soon(); // what happened before the stream was there
    };
    stream.onerror = () => {
      say("Reconnecting…", true);
      if (stream.readyState === EventSource.CLOSED) setTimeout(listen, 15000); // refused: too many streams
    };
    stream.addEventListener("happened", soon);
    stream.addEventListener("changed", soon);
    addEventListener("pagehide", () => stream.close(), { once: true });
    addEventListener("pageshow", (e) => { if (e.persisted) location.reload(); }, { once: true });
  };
  if (document.body.dataset.events) listen();

  // Find as you type; the address stays right, so a filter can be shared.
  const form = document.querySelector("form[data-find]");
  if (form) {
    let typing = 0;
    const find = () => {
      const to = new URL(location.href), q = form.elements.q.value.trim();
      if (q) to.searchParams.set("q", q); else to.searchParams.delete("q");
      if (to.href === location.href) return;
      history.replaceState(null, "", to);
      refresh();
    };
    form.addEventListener("submit", (e) => { e.preventDefault(); find(); });
    form.elements.q.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(find, 120); });
    document.addEventListener("keydown", (e) => {
      if (e.key === "/" && !e.ctrlKey && !e.metaKey && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) {
        e.preventDefault();
        form.elements.q.focus();
      }
    });
  }
})();
