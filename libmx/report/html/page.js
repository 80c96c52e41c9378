// SPDX-License-Identifier: Apache-2.0
// What a page can do beyond being read: switch the metric, sort and filter its table of all rows,
// show values under the pointer, turn dark. Without this script everything is still there to read.
'use strict';
(() => {

// Numbers as the page was written with them (libmx/report/cells.cpp).
const significant = (x, digits) => {
  if (x === 0) return '0';
  if (!Number.isFinite(x)) return x < 0 ? '-inf' : 'inf';
  const [mantissa, power] = x.toExponential(digits - 1).split('e');
  const exponent = Number(power);
  if (exponent >= -4 && exponent < digits) return x.toFixed(digits - 1 - exponent);
  return `${mantissa}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;
};
const percent = (x) => {
  if (x === 0 || x === 1) return String(100 * x);
  if (x > 0 && x < 0.0001) return '<0.01';
  if (x < 1 && x > 0.9999) return '>99.99';
  return (100 * x).toFixed(2);
};
const shown = (x, metric) => {
  if (Number.isNaN(x)) return '-';
  return metric.share ? percent(x) : significant(x, metric.digits);
};
// The fewest digits that read back as this float32.
const exact = (x) => {
  for (let digits = 1; digits < 9 && Number.isFinite(x); ++digits) {
    const near = Number(x.toPrecision(digits));
    if (Math.fround(near) === x) return String(near);
  }
  return Number.isFinite(x) ? String(Number(x.toPrecision(9))) : significant(x, 9);
};
const counted = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ',');

// `count` little-endian float32 numbers in base64; one stands for all when they are the same.
const floats = (text, count) => {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  if (bytes.length === 4) return new Float32Array(count).fill(view.getFloat32(0, true));
  return Float32Array.from({length: count}, (_, i) => view.getFloat32(4 * i, true));
};

const element = (tag, text, className) => {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
};
// A name that may break where the page lets it (shown_name in libmx/report/html/text.cpp).
const named = (made, text) => {
  for (const part of text.match(/[^./:,=_]*[./:,=_]|[^./:,=_]+/g) ?? []) {
    made.append(part, element('wbr'));
  }
  return made;
};

// The places of texts in their order, numbers inside them by value: layers.2 before layers.10.
const ranks = (texts) => {
  const {compare} = new Intl.Collator('en', {numeric: true});
  const order = texts.map((_, i) => i).sort((a, b) => compare(texts[a], texts[b]));
  const rank = new Float64Array(texts.length);
  for (let k = 1; k < order.length; ++k) {
    const same = compare(texts[order[k - 1]], texts[order[k]]) === 0;
    rank[order[k]] = same ? rank[order[k - 1]] : k;
  }
  return rank;
};

const saved = (name, text) => {
  const url = URL.createObjectURL(new Blob([text], {type: 'text/csv;charset=utf-8'}));
  const link = element('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
};

// The table of all rows. Its order is the worst value of a row in any column, or one column; a
// column is turned round by asking for it again.
const explorer = (root) => {
  const find = (selector) => root.querySelector(selector);
  const data = JSON.parse(find('script').textContent);
  const count = data.rows.length;
  const rowClass = (row) => data.classes[data.class_of_row[row]];
  const state = {metric: data.metrics[0], column: 'worst', turned: false, matching: null,
                 class: '', first: 0, order: []};
  const decoded = new Map();
  const keys = new Map();

  const values = (metric) => {
    if (!decoded.has(metric)) {
      decoded.set(metric, metric.values.map((text) => floats(text, count)));
    }
    return decoded.get(metric);
  };
  const worst = (metric) => {
    const columns = values(metric);
    return Float32Array.from({length: count}, (_, row) => {
      let found = NaN;
      for (const column of columns) {
        const x = column[row];
        if (Number.isNaN(found) || (metric.larger_is_worse ? x > found : x < found)) found = x;
      }
      return found;
    });
  };
  // What the rows are ordered by. Texts do not depend on the metric.
  const key = () => {
    const {metric, column} = state;
    if (typeof column === 'number') return values(metric)[column];
    const place = column === 'worst' ? metric : column;
    if (!keys.has(place)) {
      keys.set(place, column === 'worst' ? worst(metric) :
          ranks(column === 'name' ? data.rows : data.rows.map((_, row) => rowClass(row))));
    }
    return keys.get(place);
  };
  const isText = () => state.column === 'name' || state.column === 'class';
  const descending = () => (!isText() && state.metric.larger_is_worse) !== state.turned;

  const sort = () => {
    const by = key();
    const down = descending();
    state.order = [];
    for (let row = 0; row < count; ++row) {
      if (state.class !== '' && data.class_of_row[row] !== Number(state.class)) continue;
      if (state.matching && !state.matching.test(data.rows[row])) continue;
      state.order.push(row);
    }
    state.order.sort((a, b) => {
      const x = by[a];
      const y = by[b];
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y) || a - b;
      return (x === y ? 0 : (x < y) === down ? 1 : -1) || a - b;
    });
    state.first = 0;
  };

  const orderWords = () => {
    const end = descending() ? 'largest' : 'smallest';
    if (state.column === 'worst') return `the ${end} ${state.metric.title} in any column first`;
    if (isText()) {
      return `by ${state.column === 'name' ? data.row_title : 'class'}${
        state.turned ? ', backwards' : ''}`;
    }
    return `the ${end} ${state.metric.title} of ${data.columns[state.column]} first`;
  };
  const things = (n) => `${counted(n)} ${data.row_title}${n === 1 ? '' : 's'}`;

  const heads = [...root.querySelectorAll('thead th')];
  const columnOf = (place) => ['name', 'class'][place] ?? place - 2;

  const show = () => {
    const {metric, order, first} = state;
    const last = Math.min(first + data.page, order.length);
    const columns = values(metric);
    const body = element('tbody');
    for (const row of order.slice(first, last)) {
      const line = body.insertRow();
      line.append(named(element('td', undefined, 'name'), data.rows[row]),
                  element('td', rowClass(row)));
      columns.forEach((column, c) => {
        const x = column[row];
        const cell = element('td', shown(x, metric), 'n');
        cell.dataset.tip = `${data.rows[row]}\n${data.columns[c]}: ${metric.title} ${
          Number.isNaN(x) ? 'undefined' : exact(x)}`;
        line.append(cell);
      });
    }
    find('tbody').replaceWith(body);
    const part = order.length < count ? `${counted(order.length)} of ${things(count)}`
                                      : things(count);
    const range = last - first < order.length ? `; ${counted(first + 1)} to ${counted(last)} here`
                                              : '';
    find('.state').textContent = `${part}${range}; ${orderWords()}.`;
    find('.words').textContent = metric.words;
    heads.forEach((head, place) => {
      if (columnOf(place) === state.column) {
        head.setAttribute('aria-sort', descending() ? 'descending' : 'ascending');
      } else {
        head.removeAttribute('aria-sort');
      }
    });
    find('.pages').hidden = order.length <= data.page;
    find('.pages span').textContent = `${counted(first + 1)} to ${counted(last)} of ${
      counted(order.length)}`;
    find('.back').disabled = first === 0;
    find('.next').disabled = last === order.length;
  };
  const update = () => { sort(); show(); };

  heads.forEach((head, place) => {
    const button = element('button');
    button.type = 'button';
    button.append(...head.childNodes);
    // Browsers repeat the head of a table on each sheet of paper unless there are buttons in it.
    const printed = element('span', undefined, 'printed');
    printed.append(...button.cloneNode(true).childNodes);
    head.append(printed, button);
    button.addEventListener('click', () => {
      const column = columnOf(place);
      state.turned = state.column === column && !state.turned;
      state.column = column;
      update();
    });
  });
  find('.reset').addEventListener('click', () => {
    state.column = 'worst';
    state.turned = false;
    update();
  });
  find('.filter').addEventListener('input', (event) => {
    const {value} = event.target;
    try {
      state.matching = value === '' ? null : new RegExp(value);
      find('.problem').textContent = '';
      event.target.removeAttribute('aria-invalid');
    } catch (problem) {
      find('.problem').textContent = `Not a regular expression, so the rows stay as they are: ${
        problem.message}`;
      event.target.setAttribute('aria-invalid', 'true');
      return;
    }
    update();
  });
  find('select.class').addEventListener('change', (event) => {
    state.class = event.target.value;
    update();
  });
  find('.back').addEventListener('click', () => { state.first -= data.page; show(); });
  find('.next').addEventListener('click', () => { state.first += data.page; show(); });
  find('.save').addEventListener('click', () => {
    const quoted = (text) => /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    const columns = values(state.metric);
    const lines = [[data.row_title, 'class', ...data.columns].map(quoted)];
    for (const row of state.order) {
      lines.push([quoted(data.rows[row]), quoted(rowClass(row)),
                  ...columns.map((c) => Number.isNaN(c[row]) ? '' : exact(c[row]))]);
    }
    saved(`${state.metric.name.replace(/[^\w-]/g, '_')}.csv`,
          lines.map((line) => `${line.join(',')}\r\n`).join(''));
  });

  find('.controls').hidden = false;
  update();
  return (name) => {
    state.metric = data.metrics.find((m) => m.name === name) ?? state.metric;
    update();
  };
};

// Figures of one group: the one of the metric, else the one that is there.
const alternatives = (root) => {
  const folded = root.querySelector('details');
  const figures = [...root.querySelectorAll('figure')];
  if (folded) {
    root.append(...folded.querySelectorAll('figure'));
    folded.remove();
  }
  const show = (name) => {
    const chosen = figures.find((f) => f.dataset.metric === name) ??
        figures.find((f) => !f.hidden);
    for (const figure of figures) figure.hidden = figure !== chosen;
  };
  figures.forEach((figure, i) => { figure.hidden = i > 0; });
  return show;
};

// What is under the pointer: cells say it in data-tip, marks of figures in their <title>, which
// browsers would show late and small.
const tips = () => {
  const tip = element('div');
  tip.id = 'tip';
  tip.setAttribute('role', 'tooltip');
  tip.hidden = true;
  document.body.append(tip);
  const textOf = (target) => {
    if (!(target instanceof Element)) return '';
    const cell = target.closest('[data-tip]');
    if (cell) return cell.dataset.tip;
    const title = target.ownerSVGElement && target.querySelector(':scope > title');
    if (!title) return '';
    // It stays the accessible name.
    const text = title.textContent;
    target.setAttribute('aria-label', text);
    target.dataset.tip = text;
    title.remove();
    return text;
  };
  document.addEventListener('pointermove', (event) => {
    const text = textOf(event.target);
    tip.hidden = text === '';
    if (text === '') return;
    tip.textContent = text;
    const {clientWidth, clientHeight} = document.documentElement;
    const {width, height} = tip.getBoundingClientRect();
    const below = event.clientY + 16;
    tip.style.left = `${Math.max(0, Math.min(event.clientX + 12, clientWidth - width - 4))}px`;
    tip.style.top = `${below + height < clientHeight ? below : event.clientY - height - 8}px`;
  });
  document.addEventListener('pointerleave', () => { tip.hidden = true; });
  document.addEventListener('scroll', () => { tip.hidden = true; }, true);
};

const theme = () => {
  const root = document.documentElement;
  const button = document.getElementById('theme');
  const preferred = matchMedia('(prefers-color-scheme: dark)');
  const isDark = () => (root.dataset.theme ?? (preferred.matches ? 'dark' : 'light')) === 'dark';
  const label = () => { button.textContent = isDark() ? 'Light' : 'Dark'; };
  button.addEventListener('click', () => {
    const dark = !isDark();
    // Back at what the system prefers, the page goes with it again.
    if (dark === preferred.matches) delete root.dataset.theme;
    else root.dataset.theme = dark ? 'dark' : 'light';
    label();
  });
  preferred.addEventListener('change', label);
  label();
};

const switched = [
  ...[...document.querySelectorAll('.explorer')].map(explorer),
  ...[...document.querySelectorAll('.alternatives')].map(alternatives),
];
const metric = document.getElementById('metric');
if (metric) {
  metric.addEventListener('change', () => { for (const show of switched) show(metric.value); });
  // A browser that comes back to a page may have kept the choice.
  for (const show of switched) show(metric.value);
}
theme();
tips();
document.getElementById('bar').hidden = false;

})();
