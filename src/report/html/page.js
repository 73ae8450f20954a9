(() => {
  "use strict";
  const byId = (id) => document.getElementById(id);
  const form = byId("filters");
  const live = byId("live");
  const reload = byId("reload");
  const state = () => new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");

  // A file's page may have no storage.
  const kept = {
    get(key) { try { return sessionStorage.getItem(key); } catch { return null; } },
    set(key, value) { try { sessionStorage.setItem(key, value); } catch { /* Nothing is kept. */ } },
  };

  const details = form ? [...document.querySelectorAll("details.b")] : [];
  const blocks = details.filter((element) => element.dataset.a).map((element) => ({
    element,
    section: element.parentElement,
    action: element.dataset.a,
    reasons: element.dataset.r.split("|"),
    group: element.parentElement.dataset.group,
    count: Number(element.dataset.n),
    text: null,
  }));
  // The filters as this script wrote them last.
  let written = null;
  const fields = () => form.elements;
  const checked = () => [...form.querySelectorAll("[name=action]:checked")].map((box) => box.value);

  function read() {
    const wanted = state();
    const actions = (wanted.get("action") || "").split(",");
    for (const box of form.querySelectorAll("[name=action]")) box.checked = actions.includes(box.value);
    fields().q.value = wanted.get("q") || "";
    for (const name of ["group", "reason"]) {
      fields()[name].value = wanted.get(name) || "";
      if (fields()[name].selectedIndex < 0) fields()[name].value = "";
    }
  }

  function write() {
    const now = new URLSearchParams();
    const values = { q: fields().q.value, action: checked().join(","), group: fields().group.value, reason: fields().reason.value };
    for (const [key, value] of Object.entries(values)) if (value) now.set(key, value);
    if (reload && !reload.checked) now.set("reload", "off");
    const hash = String(now);
    if (hash === location.hash.slice(1) || !hash && !location.hash.includes("=")) return;
    written = hash;
    // No entry in the history for each letter.
    location.replace("#" + hash);
  }

  function filter() {
    const actions = checked();
    const { group, reason, q } = fields();
    const words = q.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0, instances = 0, all = 0;
    const sections = new Map();
    for (const block of blocks) {
      let match = (!actions.length || actions.includes(block.action))
        && (!group.value || block.group === group.value)
        && (!reason.value || block.reasons.includes(reason.value));
      if (match && words.length) {
        block.text ??= block.element.textContent.toLowerCase();
        match = words.every((word) => block.text.includes(word));
      }
      if (block.element.hidden === match) block.element.hidden = !match;
      sections.set(block.section, sections.get(block.section) || match);
      all += block.count;
      if (match) { shown += 1; instances += block.count; }
    }
    for (const [section, match] of sections) section.hidden = !match;
    const of = shown === blocks.length ? "" : ` of ${all}`;
    byId("matches").textContent = shown
      ? `${instances}${of} instances in ${shown} ${shown === 1 ? "entry" : "entries"}`
      : "No change matches the filters";
  }

  function goTo() {
    if (location.hash.includes("=") || location.hash.length < 2) return;
    const target = byId(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    if (target.closest("[hidden]")) { form.reset(); filter(); }
    if (target.tagName === "DETAILS") target.open = true;
    target.scrollIntoView();
  }

  function openShown(open) {
    for (const block of details) if (!block.hidden && !block.closest("[hidden]")) block.open = open;
  }

  if (form) {
    form.hidden = false;
    let timer;
    const changed = () => { clearTimeout(timer); filter(); write(); };
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("change", changed);
    form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(changed, 150); });
    form.addEventListener("reset", () => setTimeout(changed, 0));
    byId("open").addEventListener("click", () => openShown(true));
    byId("close").addEventListener("click", () => openShown(false));
    for (const link of document.querySelectorAll(".tile a")) {
      link.addEventListener("click", () => setTimeout(() => byId("changes-title").scrollIntoView(), 0));
    }
    addEventListener("hashchange", () => {
      // What was typed since then is newer.
      if (location.hash.slice(1) === written) return;
      if (location.hash.includes("=")) { read(); filter(); } else goTo();
    });
    read();
    filter();
    goTo();
  }

  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")].filter((one) => !one.hidden);
    for (const one of closed) one.open = true;
  });
  addEventListener("afterprint", () => { for (const one of closed) one.open = false; });

  if (live && live.dataset.final === "0") {
    byId("reloading").hidden = false;
    reload.checked = state().get("reload") !== "off";
    const was = JSON.parse(kept.get("nstance-page") || "{}");
    if (was.at === location.pathname) {
      for (const one of document.querySelectorAll("details[id]")) if (one.id in was.open) one.open = was.open[one.id];
      scrollTo(0, was.top);
    }
    const leave = () => {
      // Nobody is interrupted while typing.
      if (!reload.checked || form && form.contains(document.activeElement)) return;
      const open = {};
      for (const one of document.querySelectorAll("details[id]")) if (one.open || one.id === "events") open[one.id] = one.open;
      kept.set("nstance-page", JSON.stringify({ at: location.pathname, top: scrollY, open }));
      location.reload();
    };
    const next = () => setTimeout(() => { leave(); next(); }, 5000);
    reload.addEventListener("change", () => { if (form) write(); });
    next();
    const age = Date.now() - Date.parse(live.dataset.written);
    if (age > 120000) byId("stale").textContent = "Nothing was written for a while: the apply may have been killed.";
  }
})();
