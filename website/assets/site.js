// Names landmarks, lets keyboards scroll wide blocks, and renders the diagrams of a page with Mermaid from this site.
(() => {
  // Screen readers list landmarks by name, so that names must differ.
  function name() {
    document.querySelectorAll(".md-code__nav").forEach((nav, index) => {
      nav.ariaLabel = `Tools of code block ${index + 1}`;
    });
    const taken = new Set();
    for (const nav of document.querySelectorAll("nav[aria-label]")) {
      const label = nav.ariaLabel.replace(/ \(\d+\)$/, "");
      let unique = label;
      for (let number = 2; taken.has(unique); number += 1) unique = `${label} (${number})`;
      taken.add(unique);
      if (nav.ariaLabel !== unique) nav.ariaLabel = unique;
    }
    for (const box of document.querySelectorAll(".md-typeset pre > code, .md-typeset__scrollwrap")) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    }
  }
  new MutationObserver(name).observe(document.body, { childList: true, subtree: true });
  name();
})();

(() => {
  const base = document.currentScript.src.replace(/[^/]*$/, "");
  const blocks = [...document.querySelectorAll("pre.diagram")];
  if (!blocks.length) return;
  const sources = blocks.map((block) => block.textContent);

  function load() {
    return new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = `${base}mermaid.tiny.js`;
      script.onload = resolve;
      script.onerror = reject;
      document.head.append(script);
    });
  }

  async function render() {
    const dark = document.body.getAttribute("data-md-color-scheme") === "slate";
    mermaid.initialize({ startOnLoad: false, theme: dark ? "dark" : "neutral", fontFamily: "inherit" });
    for (const [index, source] of sources.entries()) {
      const { svg } = await mermaid.render(`diagram-${index}`, source);
      const figure = document.createElement("div");
      figure.className = "diagram";
      figure.tabIndex = 0; // wide diagrams scroll
      figure.role = "group";
      figure.ariaLabel = `Diagram ${index + 1}`;
      figure.innerHTML = svg;
      blocks[index].replaceWith(figure);
      blocks[index] = figure;
    }
    document.documentElement.dataset.diagrams = String(sources.length);
  }

  load().then(async () => {
    await render();
    new MutationObserver(render).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
  });
})();
