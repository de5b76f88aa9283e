'use strict';
// Hover and keyboard on the plots: the drawings are there already, this adds a cursor that all plots of time share.
(() => {
  const root = document.documentElement;
  const theme = document.getElementById('theme');
  const dark = () => root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  theme.addEventListener('click', () => {
    root.dataset.theme = dark() ? 'light' : 'dark';
    dispatchEvent(new Event('breccia-theme'));
  });

  const LEFT = 58, TOP = 12, WIDTH = 570, HEIGHT = 190, WHOLE = 640;
  const data = JSON.parse(document.getElementById('plots').textContent);
  const element = (name, attributes, parent) => {
    const node = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    parent.append(node);
    return node;
  };
  const shown = (value) => {
    if (value === null) return '–';
    const size = Math.abs(value);
    return size !== 0 && (size < 1e-3 || size >= 1e6) ? value.toExponential(3) : String(Number(value.toPrecision(5)));
  };
  const nearest = (list, x) => {
    let low = 0, high = list.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (list[middle] <= x) low = middle; else high = middle;
    }
    return Math.abs(list[low] - x) <= Math.abs(list[high] - x) ? low : high;
  };

  const plots = [];
  for (const figure of document.querySelectorAll('figure.chart[data-chart]')) {
    const chart = data[figure.dataset.chart];
    if (!chart) continue;
    const svg = figure.querySelector('svg');
    const upright = (name) => {
      const line = element('line', { class: name, y1: TOP, y2: TOP + HEIGHT }, svg);
      line.style.display = 'none';
      return line;
    };
    const now = upright('now'), cursor = upright('cursor');
    const dots = chart.lines.map((_, k) => {
      const dot = element('circle', { class: 'l' + k % 8, r: 3.5 }, svg);
      dot.style.display = 'none';
      return dot;
    });
    const tip = document.createElement('div');
    tip.className = 'tip';
    tip.hidden = true;
    figure.append(tip);
    const across = (x) => LEFT + (x - chart.x[0]) / (chart.x[1] - chart.x[0]) * WIDTH;
    const upward = (y) => {
      const [low, high] = chart.y;
      const place = chart.log ? Math.log(y / low) / Math.log(high / low) : (y - low) / (high - low);
      return TOP + (1 - Math.min(1.5, Math.max(-0.5, place))) * HEIGHT;
    };
    const place = (line, x) => {
      line.style.display = '';
      line.setAttribute('x1', across(x));
      line.setAttribute('x2', across(x));
    };
    const plot = { figure, svg, chart, tip, now, cursor, dots, place };
    plot.show = (x, withTip) => {
      place(cursor, x);
      let text = '';
      chart.lines.forEach((line, k) => {
        if (!line.x.length) return;
        const at = nearest(line.x, x), y = line.y[at];
        const visible = y !== null && (!chart.log || y > 0);
        dots[k].style.display = visible ? '' : 'none';
        if (visible) {
          dots[k].setAttribute('cx', across(line.x[at]));
          dots[k].setAttribute('cy', upward(y));
        }
        const name = document.createElement('span');
        name.textContent = chart.lines.length > 1 ? line.name + ' ' : '';
        text += `<div><span class="${chart.lines.length > 1 ? 'key l' + k % 8 : ''}">${name.innerHTML}</span><b>${shown(y)}</b> ${chart.unit}</div>`;
      });
      tip.hidden = !withTip;
      if (!withTip) return;
      tip.innerHTML = `<div>t = ${shown(x)} s</div>` + text;
      const scale = svg.clientWidth / WHOLE, middle = across(x) * scale + svg.offsetLeft;
      const right = middle + tip.offsetWidth + 24 > figure.clientWidth;
      tip.style.left = (right ? middle - tip.offsetWidth - 12 : middle + 12) + 'px';
      tip.style.top = svg.getBoundingClientRect().top - figure.getBoundingClientRect().top + 14 * scale + 'px';
    };
    plot.hide = () => {
      cursor.style.display = 'none';
      dots.forEach((dot) => { dot.style.display = 'none'; });
      tip.hidden = true;
    };
    plots.push(plot);

    let at = null;
    const point = (x) => {
      at = Math.min(chart.x[1], Math.max(chart.x[0], x));
      plots.forEach((other) => other.show(at, other === plot));
    };
    const leave = () => plots.forEach((other) => other.hide());
    const under = (event) => {
      const box = svg.getBoundingClientRect();
      return chart.x[0] + ((event.clientX - box.left) / box.width * WHOLE - LEFT) / WIDTH * (chart.x[1] - chart.x[0]);
    };
    svg.addEventListener('pointermove', (event) => point(under(event)));
    svg.addEventListener('pointerleave', leave);
    svg.addEventListener('click', (event) => dispatchEvent(new CustomEvent('breccia-seek', { detail: under(event) })));
    figure.tabIndex = 0;
    figure.addEventListener('keydown', (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const [low, high] = chart.x;
      point((at === null ? low : at) + step * (high - low) / (event.shiftKey ? 20 : 200));
    });
    figure.addEventListener('blur', leave);
  }
  addEventListener('breccia-time', (event) => plots.forEach((plot) => plot.place(plot.now, event.detail)));
})();
