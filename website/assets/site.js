// Renders the diagrams of a page with the copy of Mermaid on this site, and again when the colours change.
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
