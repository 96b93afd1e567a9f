// Timings of the drawing code, run inside the page by measure.py.
const fresh = () => { const host = document.createElement("div"); document.body.replaceChildren(host); return host; };

globalThis.measure = {
  scrub: (text) => {
    const view = globalThis.view = Draftscope.mountWatch(fresh(), {autoplay: false});
    const start = performance.now();
    view.feed(text); view.pause(); document.body.getBoundingClientRect();
    const first = performance.now() - start, taken = [];
    for (let i = 0; i < 200; i++) {
      const at = performance.now();
      view.goto((i * 37) % 200);
      document.getElementById('tree').querySelector('svg').getBBox();
      document.getElementById('text').getBoundingClientRect();
      taken.push(performance.now() - at);
    }
    view.destroy();
    return {first, taken};
  },

  live: async ([text, pause]) => {
    const view = Draftscope.mountWatch(fresh()), rows = text.trim().split('\n');
    const seen = new Set(), fed = new Map(), lags = [];
    new MutationObserver(() => {
      if (seen.has(view.step)) return;
      seen.add(view.step);
      lags.push(performance.now() - fed.get(view.step));
    }).observe(document.getElementById('tree'), {subtree: true, attributes: true, childList: true});
    view.setState('running');
    let so = '';
    const start = performance.now();
    for (let i = 0; i < rows.length; i++) {
      so += rows[i] + '\n';
      fed.set(i - 1, performance.now());
      view.feed(so);
      if (pause) await new Promise(go => setTimeout(go, Math.max(0, start + (i + 1) * pause - performance.now())));
    }
    while (view.step < view.model.steps.length - 1) await new Promise(requestAnimationFrame);
    const seconds = (performance.now() - start) / 1000;
    view.destroy();
    return {seen: [...seen].filter(s => s >= 0).length, seconds, lags};
  },

  lanes: (texts) => {
    const view = Draftscope.mountCompare(fresh(), {autoplay: false});
    view.feed(texts); view.seek(1);
    const end = Math.max(...[...view.lanes.values()].map(m => m.milliseconds)), taken = [];
    for (let i = 0; i < 100; i++) {
      const at = performance.now();
      view.seek(end * ((i * 37) % 100) / 100);
      document.body.getBoundingClientRect();
      taken.push(performance.now() - at);
    }
    view.destroy();
    return taken;
  },
};
