// SPDX-License-Identifier: Apache-2.0
// What a page can do beyond being read: switch the metric, sort and filter its table of all rows,
// keep that in its address, show values under the pointer, copy commands, turn dark. Without this
// script everything is still there to read.
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
const explorer = (root, changed) => {
  const find = (selector) => root.querySelector(selector);
  const data = JSON.parse(find('script').textContent);
  const count = data.rows.length;
  const rowClass = (row) => data.classes[data.class_of_row[row]];
  const state = {metric: data.metrics[0], column: 'worst', turned: false, matching: null,
                 class: '', first: 0, order: []};
  const decoded = new Map();
  const keys = new Map();
  const rowId = (row) => `${root.dataset.rows}-row-${row}`;

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
    const later = (row) => state.column === 'worst' && data.first.length > 0 &&
        !data.first.includes(data.class_of_row[row]);
    state.order = [];
    for (let row = 0; row < count; ++row) {
      if (state.class !== '' && data.class_of_row[row] !== Number(state.class)) continue;
      if (state.matching && !state.matching.test(data.rows[row])) continue;
      state.order.push(row);
    }
    state.order.sort((a, b) => {
      if (later(a) !== later(b)) return later(a) - later(b);
      const x = by[a];
      const y = by[b];
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y) || a - b;
      return (x === y ? 0 : (x < y) === down ? 1 : -1) || a - b;
    });
    state.first = 0;
  };

  const orderWords = () => {
    const end = descending() ? 'largest' : 'smallest';
    if (state.column === 'worst') {
      const before = data.first_words === '' ? '' : `, ${data.first_words} before others`;
      return `the ${end} ${state.metric.title} in any column first${before}`;
    }
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
      line.id = rowId(row);
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
  const update = () => { sort(); show(); changed(); };

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
  const filter = find('.filter');
  const match = () => {
    try {
      state.matching = filter.value === '' ? null : new RegExp(filter.value);
      find('.problem').textContent = '';
      filter.removeAttribute('aria-invalid');
      return true;
    } catch (problem) {
      find('.problem').textContent = `Not a regular expression, so the rows stay as they are: ${
        problem.message}`;
      filter.setAttribute('aria-invalid', 'true');
      return false;
    }
  };
  filter.addEventListener('input', () => { if (match()) update(); });
  find('select.class').addEventListener('change', (event) => {
    state.class = event.target.value;
    update();
  });
  const turnTo = (first) => { state.first = first; show(); changed(); };
  find('.back').addEventListener('click', () => turnTo(state.first - data.page));
  find('.next').addEventListener('click', () => turnTo(state.first + data.page));
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

  find('.elsewhere')?.remove();
  find('.controls').hidden = false;
  sort();
  show();
  return {
    metric(name) {
      state.metric = data.metrics.find((m) => m.name === name) ?? state.metric;
      update();
    },
    // What differs from how the page opens, by name; what is not there is as it opens.
    get() {
      const sorted = state.column !== 'worst' || state.turned;
      return {filter: filter.value, class: data.classes[state.class] ?? '',
              sort: sorted ? data.columns[state.column] ?? state.column : '',
              turned: state.turned ? '1' : '', from: state.first > 0 ? state.first + 1 : ''};
    },
    set(from) {
      filter.value = from.get('filter') ?? '';
      match();
      const place = data.classes.indexOf(from.get('class'));
      find('select.class').value = state.class = place < 0 ? '' : String(place);
      const column = data.columns.indexOf(from.get('sort'));
      state.column = column >= 0 ? column
        : ['name', 'class'].find((name) => name === from.get('sort')) ?? 'worst';
      state.turned = from.get('turned') === '1';
      sort();
      const first = Math.floor((Number(from.get('from')) - 1) / data.page) * data.page;
      state.first = first > 0 && first < state.order.length ? first : 0;
      show();
    },
    // Shows the row with this id, whatever was filtered; says whether there is one.
    go(id) {
      const row = Number(id.slice(rowId('').length));
      if (!id.startsWith(rowId('')) || !(row < count)) return false;
      if (!state.order.includes(row)) {
        filter.value = find('select.class').value = state.class = '';
        match();
        sort();
      }
      const at = state.order.indexOf(row);
      state.first = at - at % data.page;
      show();
      const line = document.getElementById(id);
      line.classList.add('target');
      line.scrollIntoView({block: 'center'});
      return true;
    },
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

const copying = () => {
  for (const command of document.querySelectorAll('.command')) {
    const button = element('button', 'Copy');
    button.type = 'button';
    button.addEventListener('click', async () => {
      const code = command.querySelector('code');
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = 'Copied';
      } catch {
        getSelection().selectAllChildren(code);
        button.textContent = 'Selected';
      }
      setTimeout(() => { button.textContent = 'Copy'; }, 2000);
    });
    command.append(button);
  }
};

// The part of the page that is being read, in the contents.
const reading = () => {
  const links = new Map([...document.querySelectorAll('nav a')].map(
      (link) => [link.getAttribute('href').slice(1), link]));
  const parts = [...links.keys()].map((id) => document.getElementById(id));
  let current;
  const mark = () => {
    const at = parts.findLastIndex((part) => part.getBoundingClientRect().top < innerHeight / 3);
    const link = links.get(parts[Math.max(0, at)].id);
    if (link === current) return;
    current?.removeAttribute('aria-current');
    link.setAttribute('aria-current', 'true');
    const list = link.closest('ul');
    if (list.scrollWidth > list.clientWidth) list.scrollLeft = link.offsetLeft - 40;
    current = link;
  };
  if (parts.length === 0) return;
  document.addEventListener('scroll', mark, {passive: true});
  mark();
};

const metric = document.getElementById('metric');
let restoring = true;
// The address ends in what was chosen: #?metric=rmse&filter=mlp, to be sent or kept.
const changed = () => {
  if (restoring) return;
  const chosen = new URLSearchParams();
  if (metric && metric.selectedIndex > 0) chosen.set('metric', metric.value);
  for (const table of tables) {
    for (const [name, value] of Object.entries(table.get())) {
      if (value !== '') chosen.set(name, value);
    }
  }
  const text = String(chosen);
  if (text === '' && !location.hash.startsWith('#?')) return;
  history.replaceState(null, '', text === '' ? '#' : `#?${text}`);
};
const tables = [...document.querySelectorAll('.explorer')].map((root) => explorer(root, changed));
const groups = [...document.querySelectorAll('.alternatives')].map(alternatives);
const showMetric = () => {
  for (const table of tables) table.metric(metric.value);
  for (const show of groups) show(metric.value);
};
const restore = () => {
  restoring = true;
  if (location.hash.startsWith('#?')) {
    const chosen = new URLSearchParams(location.hash.slice(2));
    if (metric) {
      const known = [...metric.options].some((o) => o.value === chosen.get('metric'));
      metric.value = known ? chosen.get('metric') : metric.options[0].value;
      showMetric();
    }
    for (const table of tables) table.set(chosen);
  } else {
    const id = decodeURIComponent(location.hash.slice(1));
    const part = id === '' ? null : document.getElementById(id);
    // What is folded around a part, or makes it up, opens.
    for (const details of [part?.closest('details'), part?.querySelector(':scope > details')]) {
      if (details) details.open = true;
    }
    if (!tables.some((table) => table.go(id))) part?.scrollIntoView();
  }
  restoring = false;
};
if (metric) {
  metric.addEventListener('change', () => {
    restoring = true;
    showMetric();
    restoring = false;
    changed();
  });
  // A browser that comes back to a page may have kept the choice.
  showMetric();
}
restore();
addEventListener('hashchange', restore);
theme();
tips();
copying();
reading();
document.getElementById('bar').hidden = false;

})();
