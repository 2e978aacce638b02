"use strict";
(() => {
  const form = document.getElementById("filters");
  const search = form.elements.q;
  const count = document.getElementById("count");
  const none = document.querySelector(".none[hidden]");
  const contents = document.getElementById("contents");
  const names = ["q", "severity", "role", "method", "plane"];
  const methods = [...form.elements.method.options].slice(1).map((option) => option.value);

  // What a finding says, read once: it does not change.
  const words = (root) =>
    [...root.querySelectorAll(".subject, .rule, del, ins, .gate, .hint, .fingerprint")].map((node) => node.textContent).join("\n");
  const findings = [...document.querySelectorAll(".finding")].map((node) => ({
    node,
    text: `${node.closest(".group").querySelector("h3").textContent}\n${words(node)}`.toLowerCase(),
    reach: node.dataset.reach.split(" "),
    severity: node.dataset.severity,
    plane: node.dataset.plane,
  }));
  const groups = [...document.querySelectorAll(".group")].map((node) => ({
    node,
    open: node.open,
    findings: [...node.querySelectorAll(".finding")],
    link: contents.querySelector(`a[href="${CSS.escape("#" + node.id)}"]`),
  }));

  const chosen = () => Object.fromEntries(names.map((name) => [name, form.elements[name].value]));

  function matches(finding, filter, terms) {
    const reached = (token) =>
      (!filter.role || token[0] === filter.role[0]) &&
      (!filter.method || token.slice(1) === String(methods.indexOf(filter.method)));
    return (
      (!filter.severity || finding.severity === filter.severity) &&
      (!filter.plane || finding.plane === filter.plane) &&
      ((!filter.role && !filter.method) || finding.reach.some(reached)) &&
      terms.every((term) => finding.text.includes(term))
    );
  }

  function apply() {
    const filter = chosen();
    const terms = filter.q.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const finding of findings) {
      finding.node.hidden = !matches(finding, filter, terms);
      shown += finding.node.hidden ? 0 : 1;
    }
    for (const group of groups) {
      const left = group.findings.filter((node) => !node.hidden).length;
      group.node.hidden = left === 0;
      group.node.open = group.open || shown < findings.length;
      group.link.parentNode.hidden = left === 0;
      group.link.querySelector(".number").textContent = left;
    }
    none.hidden = shown > 0 || findings.length === 0;
    count.textContent = shown === findings.length ? `${shown} findings` : `${shown} of ${findings.length} findings`;
    mark(terms);
  }

  function mark(terms) {
    if (!window.Highlight) return;
    const found = new Highlight();
    for (const { node } of terms.length ? findings.filter((finding) => !finding.node.hidden) : []) {
      const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        const text = walker.currentNode.data.toLowerCase();
        if (text.length !== walker.currentNode.data.length) continue; // letters that change their length
        for (const term of terms) {
          for (let at = text.indexOf(term); at >= 0; at = text.indexOf(term, at + term.length)) {
            const range = new Range();
            range.setStart(walker.currentNode, at);
            range.setEnd(walker.currentNode, at + term.length);
            found.add(range);
          }
        }
      }
    }
    CSS.highlights.set("found", found);
  }

  // The address: either a place on the page, or the filters.
  function remember() {
    const filters = new URLSearchParams(Object.entries(chosen()).filter(([, value]) => value));
    const address = String(filters);
    history.replaceState(null, "", address ? `#${address}` : location.href.split("#")[0]);
  }

  function arrive() {
    const place = location.hash.slice(1);
    const target = place && document.getElementById(place);
    if (target) return reveal(target);
    if (!place || place.includes("=")) {
      const filters = new URLSearchParams(place);
      choose((name) => filters.get(name) ?? "");
    }
  }

  function choose(value) {
    for (const name of names) {
      const control = form.elements[name];
      control.value = value(name);
      if (control.selectedIndex < 0) control.value = ""; // an option that this page does not have
    }
    apply();
  }

  function unfold(target) {
    for (let node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
  }

  function reveal(target) {
    if (target.closest("[hidden]")) choose(() => "");
    unfold(target);
    for (const details of target.matches(".finding") ? target.querySelectorAll("details") : []) details.open = true;
    target.focus({ preventScroll: true });
    target.scrollIntoView();
  }

  function step(by) {
    const shown = findings.map((finding) => finding.node).filter((node) => !node.hidden);
    if (shown.length === 0) return;
    const here = document.activeElement?.closest(".finding");
    const at = shown.indexOf(here);
    const next = shown[at < 0 ? 0 : Math.min(Math.max(at + by, 0), shown.length - 1)];
    unfold(next);
    next.focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
  }

  async function copy(button) {
    const source = button.previousElementSibling;
    try {
      await navigator.clipboard.writeText(source.textContent);
    } catch { // pages from a file may not; then the reader can at least copy what is selected
      getSelection().selectAllChildren(source);
      if (!document.execCommand("copy")) return;
    }
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  }

  form.addEventListener("input", () => (apply(), remember()));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => (apply(), remember())));
  window.addEventListener("hashchange", arrive);
  window.addEventListener("beforeprint", () => document.querySelectorAll(".group, .definitions > .definition").forEach(unfold));
  document.addEventListener("click", (event) => {
    const button = event.target.closest(".copy");
    if (button) copy(button);
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      form.reset();
      return;
    }
    if (event.target.closest("input, select, textarea")) return;
    if (event.key === "/") {
      event.preventDefault();
      search.focus();
      search.select();
    } else if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else if (event.key === "Enter" && event.target.matches(".finding")) {
      const details = event.target.querySelector("details");
      if (details) details.open = !details.open;
    }
  });

  const wide = window.matchMedia("(min-width: 68rem)");
  wide.addEventListener("change", () => (contents.open = wide.matches));
  contents.open = wide.matches;
  form.parentNode.hidden = false;
  document.documentElement.classList.add("js");
  apply();
  arrive();
})();
