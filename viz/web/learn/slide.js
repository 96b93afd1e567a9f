// A picture of the moment, for a slide: the SVG on the screen with its colours written into it, as a file of its own.
(function (D) {
  "use strict";
  const KEPT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "opacity", "font-size", "font-family", "font-weight", "text-anchor", "text-decoration-line", "visibility", "display", "white-space", "paint-order"];
  const GROUND = { light: "#ffffff", dark: "#171c26" }, INK = { light: "#1b2432", dark: "#e9edf4" };

  /** The largest picture inside an element that can be seen, or null. */
  D.pictureIn = function (element) {
    const seen = [...element.querySelectorAll("svg")].map((svg) => [svg, svg.getBoundingClientRect()]).filter(([, { width, height }]) => width > 200 && height > 80);
    seen.sort(([, a], [, b]) => b.width * b.height - a.width * a.height);
    return seen.length ? seen[0][0] : null;
  };

  /** A copy of this SVG that needs no style sheet. root: what carries the theme; theme: light | dark; title: written below. */
  D.slideOf = function (svg, root, theme, title) {
    const before = root.getAttribute("data-theme");
    root.setAttribute("data-theme", theme);
    const copy = svg.cloneNode(true), { width, height } = svg.getBoundingClientRect();
    try { dress(svg, copy); } finally { if (before === null) root.removeAttribute("data-theme"); else root.setAttribute("data-theme", before); }
    const box = svg.viewBox.baseVal, wide = box && box.width ? box.width : width, high = box && box.width ? box.height : height, foot = title ? 34 : 0;
    const frame = D.svg("svg", { xmlns: "http://www.w3.org/2000/svg", width: wide, height: high + foot, viewBox: `0 0 ${wide} ${high + foot}` });
    D.set(copy, { x: 0, y: 0, width: wide, height: high, class: null, id: null, style: null, tabindex: null });
    frame.append(D.svg("rect", { width: "100%", height: "100%", fill: GROUND[theme] }), copy);
    if (title) {
      const words = D.svg("text", { x: 14, y: high + 22, fill: INK[theme], "font-family": "system-ui, sans-serif", "font-size": 15 });
      words.textContent = title;
      frame.append(words);
    }
    return new XMLSerializer().serializeToString(frame);
  };

  function dress(from, to) {
    const look = getComputedStyle(from);
    const said = KEPT.map((name) => [name, look.getPropertyValue(name)]).filter(([, value]) => value && value !== "normal");
    for (const name of ["class", "style", "tabindex", "role", "aria-label", "aria-describedby", "aria-pressed"]) to.removeAttribute(name);
    for (const name of to.getAttributeNames()) if (name.startsWith("data-")) to.removeAttribute(name);
    for (const [name, value] of said) to.setAttribute(name, value);
    [...from.children].forEach((child, i) => dress(child, to.children[i]));
  }

  /** Draw an SVG text as a PNG of `scale` times its size: a promise of a blob. */
  D.pngOf = function (text, scale = 3) {
    const image = new Image(), url = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
    return new Promise((done, fail) => {
      image.addEventListener("load", () => {
        const canvas = D.el("canvas", { width: Math.round(image.width * scale), height: Math.round(image.height * scale) });
        canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
        canvas.toBlob((blob) => (blob ? done(blob) : fail(new Error("no picture"))), "image/png");
      });
      image.addEventListener("error", () => fail(new Error("no picture")));
      image.src = url;
    }).finally(() => URL.revokeObjectURL(url));
  };

  D.saveBlob = function (blob, name) {
    const url = URL.createObjectURL(blob), link = D.el("a", { href: url, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  };

  /** The buttons that save the picture inside an element. title(): what is written below it. */
  D.slideTools = function (element, root, name, title) {
    const said = D.el("span", { class: "ln-quiet", role: "status" });
    const theme = D.el("select", { class: "ln-select", "aria-label": "Colours of the slide" }, D.el("option", { value: "light", text: "light" }), D.el("option", { value: "dark", text: "dark" }));
    const save = (kind) => async () => {
      const svg = D.pictureIn(element);
      if (!svg) { D.write(said, "There is no picture here yet."); return; }
      const text = D.slideOf(svg, svg.closest(".ds") || root, theme.value, title());
      try {
        D.saveBlob(kind === "svg" ? new Blob([text], { type: "image/svg+xml" }) : await D.pngOf(text), `${name}-${theme.value}.${kind}`);
        D.write(said, "Saved.");
      } catch { D.write(said, "This browser cannot make a PNG of it; take the SVG."); }
    };
    const button = (kind) => D.el("button", { type: "button", class: "ln-button", text: kind.toUpperCase(), "aria-label": `Save this picture as ${kind.toUpperCase()}`, onclick: save(kind) });
    return D.el("div", { class: "ln-slide", role: "group", "aria-label": "Slide" }, D.el("span", { class: "ln-quiet", text: "Slide:" }), button("svg"), button("png"), theme, said);
  };
})(globalThis.Draftscope);
