// Draws the page of a study from the JSON in the element with the id "study" (src/study/page.cpp writes it).
//
// Text of the study becomes only text nodes or attribute values, never markup, because a parameter may have any name.
'use strict';
const study = JSON.parse(document.getElementById('study').textContent);
const page = document.getElementById('page');
const {parameters, trials, objectives} = study;

// ---- elements and texts
function make(tag, parent, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  parent.append(made);
  return made;
}
function draw(tag, parent, attributes, text) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}
function short(value) {
  if (value === null || value === undefined) return '–';
  if (typeof value === 'string') return value;
  if (value === 0 || (Math.abs(value) >= 1e-3 && Math.abs(value) < 1e6)) return String(+value.toPrecision(5));
  return value.toExponential(2).replace(/\.?0+e/, 'e').replace('e+', 'e');
}
function valueText(i, value) {
  if (value === null) return '–';
  return parameters[i].choices ? parameters[i].choices[value] : short(value);
}
function describe(trial) {
  const lines = [`trial ${trial.id}, ${trial.state}`,
    ...objectives.map(({metric}, k) => `${metric} ${short(trial.values[k])}`)];
  if (trial.violates) lines.push('violates a constraint');
  parameters.forEach((p, i) => { if (trial.point[i] !== null) lines.push(`${p.name} = ${valueText(i, trial.point[i])}`); });
  lines.push(`${trial.by}: ${trial.why}`);
  return lines.join('\n');
}
const tip = make('div', document.body);
tip.id = 'tip';
function showOnHover(mark, text) {
  mark.addEventListener('mousemove', event => {
    tip.textContent = text;
    tip.style.display = 'block';
    tip.style.left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8) + 'px';
    tip.style.top = Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8) + 'px';
  });
  mark.addEventListener('mouseleave', () => { tip.style.display = 'none'; });
}

// A trial without a final value counts with its last report, unless it failed.
for (const t of trials) {
  if (t.values[0] === null && t.state !== 'failed' && t.curve.length) t.values[0] = t.curve[t.curve.length - 1][1];
}
const best = new Set(study.best);
const isBest = t => best.has(t.id);

// ---- the objective that the charts show
let metric, minimize, sign, importances, valueOf, known, ranked, rank, order;
function choose(k) {
  ({metric, minimize} = objectives[k]);
  sign = minimize ? 1 : -1;
  importances = study.importance[k];
  valueOf = t => t.values[k];
  known = trials.filter(t => valueOf(t) !== null);
  ranked = [...known].sort((a, b) => sign * (valueOf(a) - valueOf(b)));
  rank = new Map(ranked.map((t, i) => [t.id, i / Math.max(1, ranked.length - 1)]));
  order = parameters.map((_, i) => i);
  if (importances) order.sort((a, b) => importances.main[b] - importances.main[a]);
}
// The opacity of the line of a trial. The lines of better trials are more opaque.
const fade = t => (0.12 + 0.75 * Math.pow(1 - (rank.get(t.id) ?? 1), 2)).toFixed(2);

// ---- scales
function ticksOf(low, high, log) {
  const ticks = [];
  if (log) {
    const every = Math.max(1, Math.ceil(Math.log10(high / low) / 5));
    const last = Math.log10(high) + 1e-9;
    for (let e = Math.ceil(Math.log10(low) - 1e-9); e <= last; e += every) ticks.push(Math.pow(10, e));
    return ticks.length > 1 ? ticks : [low, high];
  }
  const raw = (high - low) / 4, unit = Math.pow(10, Math.floor(Math.log10(raw)));
  const step = [1, 2, 5, 10].map(f => f * unit).find(s => s >= raw);
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; ++k) ticks.push(k * step);
  return ticks;
}
// Returns a function from values to pixels, with its ticks.
function scaleOf(low, high, log, from, to) {
  if (!(high > low)) { low -= log ? low / 2 : 0.5; high += log ? high : 0.5; }
  const transform = log ? Math.log : x => x;
  const fraction = x => (transform(x) - transform(low)) / (transform(high) - transform(low));
  const scale = x => from + (to - from) * Math.min(1, Math.max(0, fraction(x)));
  scale.ticks = ticksOf(low, high, log);
  return scale;
}
// Clips values that are far worse than the rest to the edge, because a scale that showed them would hide all detail.
function valueScale(from, to, numbers, minimize) {
  const sign = minimize ? 1 : -1;
  const all = numbers.filter(v => v !== null).map(v => sign * v).sort((a, b) => a - b);
  if (!all.length) return scaleOf(0, 1, false, from, to);
  const low = all[0], middle = all[all.length >> 1];
  const high = Math.min(all[all.length - 1], middle > low ? middle + 3 * (middle - low) : all[all.length - 1]);
  const [bottom, top] = minimize ? [low, high] : [-high, -low];
  const log = bottom > 0 && top / bottom > 50;
  const margin = log ? 0 : 0.04 * (top - bottom);
  return scaleOf(bottom - margin, top + margin, log, from, to);
}
function parameterScale(i, from, to) {
  const p = parameters[i];
  if (p.choices) {
    const step = (to - from) / p.choices.length;
    const scale = c => from + step * (c + 0.5);
    scale.ticks = p.choices.map((_, c) => c);
    return scale;
  }
  return scaleOf(p.low, p.high, p.log, from, to);
}
function keepWholeTicks(scale) { scale.ticks = scale.ticks.filter(tick => tick === Math.round(tick)); }
function clipped(text, letters) { return text.length > letters ? text.slice(0, letters - 1) + '…' : text; }

// ---- parts of charts
function card(title, about, parent) {
  const section = make('section', parent || page);
  make('h2', section, title);
  if (about) make('p', section, about);
  return section;
}
function canvas(parent, width, height) {
  return draw('svg', parent, {viewBox: `0 0 ${width} ${height}`, role: 'img'});
}
function yAxis(svg, scale, left, right) {
  for (const tick of scale.ticks) {
    draw('line', svg, {x1: left, x2: right, y1: scale(tick), y2: scale(tick), class: 'grid'});
    draw('text', svg, {x: left - 6, y: scale(tick) + 4, 'text-anchor': 'end'}, short(tick));
  }
}
function xAxis(svg, scale, bottom, left, right, labelOf, letters) {
  draw('line', svg, {x1: left, x2: right, y1: bottom, y2: bottom, class: 'axis'});
  for (const tick of scale.ticks) {
    const text = clipped(labelOf ? labelOf(tick) : short(tick), letters || 12);
    draw('text', svg, {x: scale(tick), y: bottom + 15, 'text-anchor': 'middle'}, text);
  }
}
function mark(svg, trial, x, y, size) {
  const kind = trial.state === 'failed' ? 'failed' : trial.state === 'complete' && !trial.violates ? '' : 'open';
  const made = trial.state === 'failed'
    ? draw('path', svg, {d: `M${x - size} ${y - size}l${2 * size} ${2 * size}m0 ${-2 * size}l${-2 * size} ${2 * size}`})
    : draw('circle', svg, {cx: x, cy: y, r: isBest(trial) ? size + 1.5 : size});
  made.setAttribute('class', `mark ${kind} ${isBest(trial) ? 'best' : ''}`);
  if (!isBest(trial) && kind === '') made.setAttribute('fill-opacity', 0.55);
  made.setAttribute('stroke-opacity', kind === 'open' ? 0.6 : 0.9);
  showOnHover(made, describe(trial));
}

// ---- the sections of the page
function head() {
  make('h1', page, `Search: ${study.aim}`);
  make('p', page, `${parameters.length} parameters; sampler ${study.sampler}` +
    (study.pruner === 'none' ? '' : `, pruner ${study.pruner}`));
  document.title = `Study: ${objectives.map(o => o.metric).join(', ')}`;
  const tiles = make('div', page, undefined, 'tiles');
  const tile = (value, label) => {
    const made = make('div', tiles, undefined, 'tile');
    make('b', made, value);
    make('span', made, label);
  };
  const count = state => trials.filter(t => t.state === state).length;
  const first = trials.find(isBest);
  if (!first) tile('–', count('complete') ? 'no trial measured every metric of the search' : 'no trial is complete yet');
  else if (first.violates) tile('–', `no trial meets the constraints; trial ${first.id} comes nearest`);
  else if (objectives.length > 1) tile(String(best.size), 'trials on the Pareto front');
  else tile(short(first.values[0]), `best ${objectives[0].metric}, trial ${first.id}`);
  tile(`${trials.length} of ${study.planned}`, 'trials started');
  tile(String(count('complete')), 'complete');
  tile(String(count('pruned') + count('paused')), 'pruned or paused');
  if (count('running')) tile(String(count('running')), 'running');
  if (count('failed')) tile(String(count('failed')), 'failed');
  tile(String(trials.reduce((sum, t) => sum + t.curve.length, 0)), 'evaluations');
}

// Draws the trials by two objectives. The line joins the trials of the Pareto front.
function front(parent, a, b) {
  const section = card(`${objectives[b].metric} against ${objectives[a].metric}`, undefined, parent);
  const width = 560, height = 330, left = 58, right = width - 12, top = 8, bottom = height - 28;
  const svg = canvas(section, width, height);
  const both = trials.filter(t => t.values[a] !== null && t.values[b] !== null);
  const scale = (k, from, to) => valueScale(from, to, both.map(t => t.values[k]), objectives[k].minimize);
  const x = scale(a, left + 6, right), y = scale(b, bottom, top);
  yAxis(svg, y, left, right);
  xAxis(svg, x, bottom, left, right);
  for (const t of both) mark(svg, t, x(t.values[a]), y(t.values[b]), 3);
  if (objectives.length > 2) return;  // with three or more objectives the front is not a line
  const line = both.filter(isBest).sort((s, t) => s.values[a] - t.values[a]);
  if (line.length > 1) draw('path', svg, {class: 'step', 'pointer-events': 'none',
      d: line.map((t, i) => `${i ? 'L' : 'M'}${x(t.values[a])} ${y(t.values[b])}`).join('')});
}
function fronts() {
  const two = make('div', page, undefined, 'two');
  for (let a = 0; a < objectives.length; ++a) for (let b = a + 1; b < objectives.length; ++b) front(two, a, b);
}

function history(parent) {
  const section = card('Best so far',
      `${metric} of every trial, in the order of their starts. The line shows the best complete trial so far.`,
      parent);
  const width = 680, height = 290, left = 58, right = width - 12, top = 8, bottom = height - 28;
  const svg = canvas(section, width, height);
  const x = scaleOf(0, Math.max(1, trials.length - 1), false, left + 6, right);
  const y = valueScale(bottom, top, known.map(valueOf), minimize);
  keepWholeTicks(x);
  yAxis(svg, y, left, right);
  xAxis(svg, x, bottom, left, right);
  let path = '', bestValue = null;
  for (const t of trials) {
    const value = valueOf(t), counts = t.state === 'complete' && !t.violates && value !== null;
    if (counts && (bestValue === null || sign * (value - bestValue) < 0)) {
      path += bestValue === null ? `M${x(t.id)} ${y(value)}` : `H${x(t.id)}V${y(value)}`;
      bestValue = value;
    }
  }
  for (const t of trials) {
    const value = valueOf(t);
    if (value !== null || t.state === 'failed') mark(svg, t, x(t.id), value === null ? top : y(value), 3);
  }
  if (path) draw('path', svg, {d: path + `H${right}`, class: 'step', 'pointer-events': 'none'});
}

function importance(parent) {
  const section = card('Importance', importances
    ? `Shares of the variance of ${metric} over the whole space, from ${importances.trials} trials; ` +
      'lighter bars: the interaction of two parameters.'
    : 'Needs ten trials with a value.', parent);
  if (!importances) return;
  const rows = order.slice(0, 12).map(i => [parameters[i].name, importances.main[i], 'bar']);
  for (const [a, b, share] of importances.pairs.slice(0, 4)) {
    if (share > 0.01) rows.push([`${parameters[a].name} × ${parameters[b].name}`, share, 'pair']);
  }
  rows.sort((a, b) => b[1] - a[1]);
  const width = 440, row = 34, most = Math.max(0.01, ...rows.map(r => r[1]));
  const svg = canvas(section, width, rows.length * row + 4);
  rows.forEach(([name, share, kind], k) => {
    draw('text', svg, {x: 0, y: k * row + 12, class: 'name'}, clipped(name, 58));
    draw('rect', svg, {x: 0, y: k * row + 17, height: 9, rx: 2, width: Math.max(1.5, share / most * (width - 60)),
        class: kind});
    draw('text', svg, {x: Math.max(1.5, share / most * (width - 60)) + 6, y: k * row + 26},
        `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`);
  });
}

function coordinates(parent) {
  const section = card('Parallel coordinates',
      'One line for each trial; better trials are stronger. Parameters are ordered by importance. ' +
      'At the foot: the parameter is inactive.',
      parent);
  const wide = make('div', section, undefined, 'wide');
  const width = Math.max(1180, 120 * (order.length + 1)), height = 330, top = 34, bottom = height - 40,
      off = height - 14;
  const svg = canvas(wide, width, height);
  svg.style.minWidth = Math.min(width, 120 * (order.length + 1)) + 'px';
  const position = k => 70 + k * (width - 150) / order.length;
  const scales = order.map(i => parameterScale(i, bottom, top));
  const value = valueScale(bottom, top, known.map(valueOf), minimize);
  for (const t of [...ranked.slice(0, 300)].reverse()) {
    const points = order.map((i, k) => `${position(k)},${t.point[i] === null ? off : scales[k](t.point[i])}`);
    points.push(`${position(order.length)},${value(valueOf(t))}`);
    const line = draw('polyline', svg, {points: points.join(' '), class: `path ${isBest(t) ? 'best' : ''}`,
        'stroke-opacity': fade(t)});
    showOnHover(line, describe(t));
    line.addEventListener('mouseenter', () => line.classList.add('hot'));
    line.addEventListener('mouseleave', () => line.classList.remove('hot'));
  }
  const axis = (k, name, scale, labelOf) => {
    draw('line', svg, {x1: position(k), x2: position(k), y1: top, y2: bottom, class: 'axis'});
    draw('text', svg, {x: position(k), y: top - 16, 'text-anchor': 'middle', class: 'name'}, clipped(name, 20));
    for (const tick of scale.ticks) draw('text', svg, {x: position(k) - 5, y: scale(tick) + 4, 'text-anchor': 'end'},
        clipped(labelOf(tick), 12));
  };
  order.forEach((i, k) => axis(k, parameters[i].name, scales[k], tick => valueText(i, tick)));
  axis(order.length, metric, value, short);
}

function slices(parent) {
  const section = card('Slices', `${metric} over each parameter; open marks are trials that did not complete` +
      (study.constrained ? ' or that violate a constraint.' : '.'), parent);
  const many = make('div', section, undefined, 'many');
  const width = 270, height = 200, left = 46, right = width - 8, top = 22, bottom = height - 26;
  for (const i of order) {
    const svg = canvas(make('div', many), width, height);
    draw('text', svg, {x: 0, y: 11, class: 'name'}, clipped(parameters[i].name, 40));
    const x = parameterScale(i, left + 6, right), y = valueScale(bottom, top, known.map(valueOf), minimize);
    yAxis(svg, y, left, right);
    const letters = parameters[i].choices ? Math.floor(32 / parameters[i].choices.length) : 8;
    xAxis(svg, x, bottom, left, right, tick => valueText(i, tick), letters);
    const jitter = parameters[i].choices
        ? t => ((t.id * 0.618) % 1 - 0.5) * 0.5 * (right - left) / parameters[i].choices.length : () => 0;
    for (const t of known) if (t.point[i] !== null) mark(svg, t, x(t.point[i]) + jitter(t), y(valueOf(t)), 2.4);
  }
}

function curves() {
  const drawn = trials.filter(t => t.curve.length > 1);
  if (!drawn.length) return;
  const section = card('Learning curves',
      `${objectives[0].metric} as every trial reported it; the best ${objectives.length > 1 ? 'are' : 'is'} highlighted.`);
  const width = 1180, height = 300, left = 58, right = width - 12, top = 8, bottom = height - 28;
  const svg = canvas(section, width, height);
  const steps = drawn.flatMap(t => t.curve.map(c => c[0]));
  // A large study has more steps than a call may have arguments, so Math.min(...steps) would throw.
  const [first, last] = steps.reduce(([a, b], s) => [Math.min(a, s), Math.max(b, s)], [Infinity, -Infinity]);
  const x = scaleOf(first, last, false, left + 6, right);
  if (steps.every(step => step === Math.round(step))) keepWholeTicks(x);
  const y = valueScale(bottom, top, drawn.flatMap(t => t.curve.map(c => c[1])), objectives[0].minimize);
  yAxis(svg, y, left, right);
  xAxis(svg, x, bottom, left, right);
  for (const t of [...drawn.filter(t => !isBest(t)), ...drawn.filter(isBest)]) {
    const points = t.curve.filter(c => c[1] !== null).map(c => `${x(c[0])},${y(c[1])}`).join(' ');
    const line = draw('polyline', svg, {points, class: `path ${isBest(t) ? 'best' : ''}`,
        'stroke-opacity': t.values[0] === null ? 0.3 : fade(t)});
    showOnHover(line, describe(t));
  }
}

function table() {
  const section = card('Trials', 'Click a heading to sort.');
  const made = make('table', make('div', section, undefined, 'scroll'));
  const state = t => t.state + (t.violates ? ', violates a constraint' : '');
  const columns = [['trial', t => t.id], ['state', state], ...objectives.map((o, k) => [o.metric, t => t.values[k]]),
    ...parameters.map((p, i) => [p.name, t => t.point[i], v => valueText(i, v)]), ['by', t => t.by], ['why', t => t.why]];
  const header = make('tr', make('thead', made)), body = make('tbody', made);
  let sortedBy = 2, descending = !objectives[0].minimize;
  const fill = () => {
    body.replaceChildren();
    const get = columns[sortedBy][1];
    const rows = [...trials].sort((a, b) => {
      const x = get(a), y = get(b);
      if (x === null || y === null) return (x === null) - (y === null);
      return (x < y ? -1 : x > y ? 1 : 0) * (descending ? -1 : 1);
    });
    for (const t of rows) {
      const row = make('tr', body, undefined, isBest(t) ? 'best' : t.state === 'failed' ? 'failed' : '');
      for (const [, cell, textOf] of columns) {
        const value = cell(t);
        make('td', row, textOf ? textOf(value) : short(value), typeof value === 'string' ? 'text' : '');
      }
    }
    [...header.children].forEach((cell, k) => cell.classList.toggle('sorted', k === sortedBy));
  };
  columns.forEach(([name], k) => {
    const kind = ['state', 'by', 'why'].includes(name) ? 'text' : '';
    make('th', header, name, kind).addEventListener('click', () => {
      descending = sortedBy === k && !descending;
      sortedBy = k;
      fill();
    });
  });
  fill();
}

head();
if (objectives.length > 1) fronts();
const choice = make('p', page), charts = make('div', page);
function show(k) {
  choose(k);
  charts.replaceChildren();
  const two = make('div', charts, undefined, 'two');
  history(two);
  importance(two);
  if (known.length) { coordinates(charts); slices(charts); }
}
if (objectives.length > 1) {
  const select = make('select', make('label', choice, 'The charts below show '));
  for (const {metric} of objectives) make('option', select, metric);
  select.addEventListener('change', () => show(select.selectedIndex));
}
show(0);
curves();
table();
make('pre', card('Summary'), study.summary);
