// Draws the page from #explore-data. Text from the tables is only ever set as text, never as HTML.
(function () {
  'use strict';
  var began = performance.now();
  var data = JSON.parse(document.getElementById('explore-data').textContent);
  var ROW = 30, LANES = 60, PRINTED = 500, MOST_ROWS = 300000, NULL = {};
  function $(id) { return document.getElementById(id); }
  function el(tag, attributes, text) {
    var made = document.createElement(tag);
    for (var name in attributes || {}) made.setAttribute(name, attributes[name]);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  // -- the data: positions are places in a sorted list ---------------------------------------------

  // With a server the tables have no rows here. Each answer has some, as a table of its own: a slice.
  var served = !!data.served, points = {};
  function sums(steps) {
    var sum = BigInt(0);
    return steps.map(function (step) { return sum += BigInt(step); });
  }
  function prepare(table, known) {
    table.points = known;
    table.since = Int32Array.from(table.since);
    table.until = Int32Array.from(table.until);
    table.of = Int32Array.from(table.of);
    table.cells.forEach(function (column) { column.places = Int32Array.from(column.places); });
    table.isLate = new Set(table.late);
    table.whoColumn = table.columns.findIndex(function (one) { return one.name === table.who; });
    table.id = table.schema + '.' + table.name;
    return table;
  }
  // The name; with its schema where two tables have the name.
  function labelOf(table) {
    var isAlone = data.tables.every(function (one) { return one.name !== table.name || one.id === table.id; });
    return isAlone ? table.name : table.id;
  }
  function slice(raw) { return prepare(raw, sums(raw.points)); }
  ['time', 'number'].forEach(function (axis) { points[axis] = sums(data.points[axis]); });
  data.tables.forEach(function (table) { prepare(table, points[table.axis]); });
  // The place of the last point that is not after `at`; -1 if all are.
  function placeOf(known, at) {
    var low = 0, high = known.length;
    while (low < high) {
      var middle = (low + high) >> 1;
      if (known[middle] <= at) low = middle + 1; else high = middle;
    }
    return low - 1;
  }
  // [since, until): the start is inside, the end outside; no end: in force from the start on.
  function inForce(table, place) {
    var found = [], since = table.since, until = table.until;
    for (var row = 0; row < since.length; row++) {
      if (since[row] <= place && (until[row] < 0 || place < until[row])) found.push(row);
    }
    return found;
  }
  function cellOf(table, column, row) {
    var place = table.cells[column].places[row];
    return place < 0 ? null : table.cells[column].values[place];
  }
  function keyOf(table, row) { return table.keys[table.of[row]]; }
  function pointOf(table, place) { return table.points[place]; }

  var own = Intl.DateTimeFormat().resolvedOptions().timeZone;

  // -- times ---------------------------------------------------------------------------------------

  var formats = {};
  function parts(ms, zone) {
    formats[zone] = formats[zone] || new Intl.DateTimeFormat('en-CA', {
      timeZone: zone, hourCycle: 'h23', year: 'numeric', month: '2-digit', day: '2-digit',
      hour: '2-digit', minute: '2-digit', second: '2-digit'
    });
    var found = {};
    formats[zone].formatToParts(new Date(ms)).forEach(function (one) { found[one.type] = one.value; });
    return found;
  }
  var THOUSAND = BigInt(1000), MILLION = BigInt(1000000), QUARTER = BigInt(900000000), DAY = BigInt(86400000000);
  var GREATEST = BigInt('9223372036854775807');
  function floored(micros, unit) {
    var quotient = micros / unit;
    return micros < 0 && quotient * unit !== micros ? quotient - BigInt(1) : quotient;
  }
  function timeText(micros) {
    var ms = Number(floored(micros, THOUSAND));
    if (Math.abs(ms) > 8.64e15) return String(micros);
    var fraction = String(micros - floored(micros, MILLION) * MILLION).padStart(6, '0').replace(/0+$/, '');
    var text;
    if (state.zone === 'UTC') text = new Date(ms).toISOString().replace(/\.\d+Z$/, '').replace('T', ' ');
    else {
      var p = parts(ms, state.zone);
      text = p.year.padStart(4, '0') + '-' + p.month + '-' + p.day + ' ' + p.hour + ':' + p.minute + ':' + p.second;
    }
    return text + (fraction ? '.' + fraction : '');
  }
  function positionText(axis, at) { return axis === 'number' ? String(at) : timeText(at); }
  // Milliseconds of a clock in UTC. Date.UTC takes the years 0 to 99 for 1900 to 1999.
  function utcOf(year, month, day, hour, minute, second) {
    var made = new Date(Date.UTC(2000, 0, 1, hour, minute, second));
    return made.setUTCFullYear(year, month - 1, day);
  }
  // A number from -2^63 to 2^63 - 1; null if the text is none.
  function bigintOf(text) {
    var number = /^-?\d{1,19}$/.test(text) ? BigInt(text) : null;
    return number === null || BigInt.asIntN(64, number) === number ? number : null;
  }
  // Text of the chosen zone as a position; null if it is none.
  function parsePosition(axis, text) {
    text = text.trim();
    if (axis === 'number') return bigintOf(text);
    var found = /^(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)?( ?Z| UTC)?$/.exec(text);
    if (!found) return null;
    var wanted = utcOf(+found[1], +found[2], +found[3], +(found[4] || 0), +(found[5] || 0), +(found[6] || 0));
    if (new Date(wanted).getUTCDate() !== +found[3] || +(found[4] || 0) > 23) return null;
    var ms = wanted;
    if (state.zone !== 'UTC' && !found[8]) {
      for (var round = 0; round < 3; round++) {
        var p = parts(ms, state.zone);
        ms += wanted - utcOf(+p.year, +p.month, +p.day, +p.hour, +p.minute, +p.second);
      }
    }
    return BigInt(ms) * THOUSAND + BigInt((found[7] || '').padEnd(6, '0'));
  }
  function shown(text, type) {
    if (text === null) return NULL;
    return type === 'timestamp' && /^-?\d+$/.test(text) ? timeText(BigInt(text)) : text;
  }
  function fill(node, value) {
    if (value === NULL) { node.textContent = 'NULL'; node.classList.add('null'); }
    else if (value === '') { node.textContent = "''"; node.classList.add('null'); }
    else { node.textContent = value; node.title = value; }
  }

  // -- the view: everything that the link contains -------------------------------------------------

  var axes = ['time', 'number'].filter(function (axis) {
    return data.tables.some(function (table) { return table.axis === axis; });
  });
  var state = { axis: axes[0] || 'time', tables: null, at: null, than: null, zone: 'UTC', find: '',
    match: 'prefix', chosen: null, only: false, user: '', column: '', sort: {} };
  // What the link has instead of a position, until another one is chosen.
  var unread = '';
  function readLink() {
    var link = new URLSearchParams(location.hash.slice(1)), wrong = [];
    function position(name) {
      var text = link.get(name), found = text ? bigintOf(text) : null;
      if (text && found === null) wrong.push(name + '=' + text);
      return found;
    }
    if (axes.indexOf(link.get('axis')) >= 0) state.axis = link.get('axis');
    state.tables = link.has('tables') ? link.getAll('tables').filter(Boolean) : null;
    state.at = position('at');
    state.than = position('than');
    unread = wrong.length ? 'Not readable in this link: ' + wrong.join(', ') + '. ' : '';
    state.find = link.get('find') || '';
    state.match = link.get('match') === 'exact' ? 'exact' : 'prefix';
    state.only = link.has('only');
    state.user = link.get('user') || '';
    state.column = link.get('column') || '';
    state.sort = {};
    link.getAll('sort').forEach(function (text) {
      var found = /^(.+) (\d+) (up|down)$/.exec(text);
      if (found) state.sort[found[1]] = { column: +found[2], down: found[3] === 'down' };
    });
    try { new Intl.DateTimeFormat('en', { timeZone: link.get('zone') || 'UTC' }); state.zone = link.get('zone') || 'UTC'; }
    catch (error) { state.zone = 'UTC'; }
    try { state.chosen = JSON.parse(link.get('key')); } catch (error) { state.chosen = null; }
    if (!state.chosen || typeof state.chosen.table !== 'string' || !Array.isArray(state.chosen.key)) state.chosen = null;
  }
  function writeLink() {
    var link = new URLSearchParams();
    if (axes.length > 1) link.set('axis', state.axis);
    if (state.tables) (state.tables.length ? state.tables : ['']).forEach(function (id) { link.append('tables', id); });
    if (state.at !== null) link.set('at', state.at);
    if (state.than !== null) link.set('than', state.than);
    if (state.find) link.set('find', state.find);
    if (state.match === 'exact') link.set('match', 'exact');
    if (state.only) link.set('only', '1');
    if (state.user) link.set('user', state.user);
    if (state.column) link.set('column', state.column);
    if (state.zone !== 'UTC') link.set('zone', state.zone);
    Object.keys(state.sort).forEach(function (id) { link.append('sort', id + ' ' + state.sort[id].column + (state.sort[id].down ? ' down' : ' up')); });
    if (state.chosen) link.set('key', JSON.stringify(state.chosen));
    ownHash = '#' + link;
    history.replaceState(null, '', ownHash);
  }
  var ownHash = '';
  function ofAxis() { return data.tables.filter(function (table) { return table.axis === state.axis; }); }
  function tables() {
    return ofAxis().filter(function (table) { return !state.tables || state.tables.indexOf(table.id) >= 0; });
  }
  // The first and the last position of the chosen tables, without open ends.
  function limits() {
    var first = null, last = null;
    if (served) {
      tables().forEach(function (table) {
        if (table.limits[0] === null) return;
        var low = BigInt(table.limits[0]), high = BigInt(table.limits[1]);
        if (first === null || low < first) first = low;
        if (last === null || high > last) last = high;
      });
      return first === null ? [BigInt(0), BigInt(1)] : [first, last > first ? last : first + BigInt(1)];
    }
    tables().forEach(function (table) {
      for (var row = 0; row < table.since.length; row++) {
        if (first === null || table.since[row] < first) first = table.since[row];
        if (last === null || table.since[row] > last) last = table.since[row];
        if (!table.open[row] && table.until[row] > last) last = table.until[row];
      }
    });
    var known = points[state.axis];
    return first === null ? [BigInt(0), BigInt(1)] : [known[first], known[last] > known[first] ? known[last] : known[first] + BigInt(1)];
  }
  var range = null;

  // -- search --------------------------------------------------------------------------------------

  // `12` looks at the key; `space=roads, id=7` at several columns. A comma that no = follows belongs to the value.
  function termsOf(text) {
    return text.indexOf('=') < 0 ? [] : text.split(/,(?=[^,=]*=)/).map(function (term) { return term.split('='); });
  }
  // The places of a name in the key and in the other columns; -1 where it is not.
  function placesOfName(table, name) {
    var wanted = name.trim().toLowerCase();
    return { key: table.key.findIndex(function (one) { return one.toLowerCase() === wanted; }),
      cell: table.columns.findIndex(function (one) { return one.name.toLowerCase() === wanted; }) };
  }
  function search(table) {
    var text = state.find.trim(), tests = [];
    if (!text) return function () { return true; };
    function matches(value, wanted) {
      if (value === null) return wanted === 'NULL';
      return state.match === 'exact' ? value === wanted : value.toLowerCase().indexOf(wanted.toLowerCase()) === 0;
    }
    var terms = termsOf(text);
    if (!terms.length) {
      var hits = table.keys.map(function (key) { return key.some(function (value) { return matches(value, text); }); });
      return function (row) { return hits[table.of[row]]; };
    }
    terms.forEach(function (term) {
      var places = placesOfName(table, term[0]), inKey = places.key, column = places.cell, wanted = term.slice(1).join('=').trim();
      if (inKey >= 0) tests.push(function (row) { return matches(keyOf(table, row)[inKey], wanted); });
      else if (column >= 0) {
        var type = table.columns[column].type;
        var good = table.cells[column].values.map(function (value) { return matches(shown(value, type), wanted); });
        tests.push(function (row) {
          var place = table.cells[column].places[row];
          return place < 0 ? matches(null, wanted) : good[place];
        });
      } else tests.push(function () { return false; });
    });
    return function (row) { return tests.every(function (test) { return test(row); }); };
  }

  // -- a list of which only the visible rows are in the document -----------------------------------

  function Grid(host, label) {
    this.host = host;
    host.className = 'grid';
    host.setAttribute('role', 'table');
    host.setAttribute('tabindex', '0');
    host.setAttribute('aria-label', label);
    this.head = host.appendChild(el('div', { role: 'row', class: 'grid-head' }));
    this.space = host.appendChild(el('div', { class: 'grid-space', role: 'rowgroup' }));
    this.count = 0;
    var grid = this;
    host.addEventListener('scroll', function () { grid.draw(0, true); });
    host.addEventListener('keydown', function (event) {
      if (event.target !== host) return;
      var by = { ArrowDown: ROW, ArrowUp: -ROW, PageDown: host.clientHeight - 2 * ROW, PageUp: 2 * ROW - host.clientHeight }[event.key];
      if (by !== undefined) host.scrollTop += by;
      else if (event.key === 'Home') host.scrollTop = 0;
      else if (event.key === 'End') host.scrollTop = host.scrollHeight;
      else return;
      event.preventDefault();
    });
    addEventListener('beforeprint', function () { grid.draw(PRINTED); });
    addEventListener('afterprint', function () { grid.draw(); });
  }
  // `sorted` is {column, down}; `sort` is called with the number of the column whose head was pressed.
  Grid.prototype.show = function (columns, count, drawRow, sorted, sort) {
    var head = this.head;
    var text = columns.map(function (one) { return one.label; }).join('\u0000') + JSON.stringify(sorted || null);
    if (text !== this.headText) {
      this.headText = text;
      var active = Array.prototype.indexOf.call(head.children, document.activeElement && document.activeElement.parentNode);
      head.textContent = '';
      columns.forEach(function (one, number) {
        var made = head.appendChild(el('span', { role: 'columnheader', title: one.label }, sort ? undefined : one.label));
        if (!sort) return;
        var isSorted = sorted && sorted.column === number;
        var button = made.appendChild(el('button', { type: 'button', class: 'sort' }, one.label + (isSorted ? sorted.down ? ' ▼' : ' ▲' : '')));
        if (isSorted) made.setAttribute('aria-sort', sorted.down ? 'descending' : 'ascending');
        button.addEventListener('click', function () { sort(number); });
        if (number === active) button.focus();
      });
      this.host.style.setProperty('--columns', columns.map(function (one) { return 'minmax(' + one.width + 'px, 1fr)'; }).join(' '));
      this.host.style.setProperty('--width', columns.reduce(function (sum, one) { return sum + one.width; }, 0) + 'px');
    }
    this.count = count;
    this.drawRow = drawRow;
    this.space.style.height = count * ROW + 'px';
    this.host.setAttribute('aria-rowcount', count + 1);
    this.draw();
  };
  // Scrolling keeps the rows that are still visible, and with them the focus.
  Grid.prototype.draw = function (printed, isScrolled) {
    if (!this.drawRow) return;
    var kept = new Map(), active = document.activeElement, focus = null;
    Array.prototype.forEach.call(this.space.children, function (row) {
      var place = +row.getAttribute('aria-rowindex') - 2;
      if (isScrolled && !row.dataset.waits) kept.set(place, row);
      else if (row.contains(active)) focus = [place, Array.prototype.indexOf.call(row.querySelectorAll('button'), active)];
    });
    var first = printed ? 0 : Math.max(0, Math.floor(this.host.scrollTop / ROW) - 4);
    var most = printed || Math.ceil((this.host.clientHeight || 400) / ROW) + 8;
    var last = Math.min(this.count, first + most), space = this.space, rows = [];
    for (var place = first; place < last; place++) {
      var row = kept.get(place);
      if (!row) {
        row = el('div', { role: 'row', class: 'grid-row', 'aria-rowindex': place + 2 });
        row.style.top = place * ROW + 'px';
        this.drawRow(place, row);
      }
      if (printed && row.dataset.waits) break;
      rows.push(row);
    }
    if (!kept.size) space.replaceChildren.apply(space, rows);
    else {
      // A row that stays is not moved: that would take the focus from it.
      kept.forEach(function (row, place) { if ((place < first || place >= last) && !row.contains(active)) row.remove(); });
      var before = space.firstChild;
      rows.forEach(function (row) {
        if (row === before) before = before.nextSibling;
        else if (row.parentNode !== space) space.insertBefore(row, before);
      });
      Array.prototype.slice.call(space.children).forEach(function (row) { if (rows.indexOf(row) < 0 && !row.contains(active)) row.remove(); });
    }
    if (focus) {
      var again = space.querySelector('[aria-rowindex="' + (focus[0] + 2) + '"]'), button = again && again.querySelectorAll('button')[focus[1]];
      if (button) button.focus({ preventScroll: true });
    }
    var height = (printed ? rows.length : this.count) * ROW + 'px';
    if (this.space.style.height !== height) this.space.style.height = height;
    this.host.dataset.notPrinted = !printed || rows.length === this.count ? ''
      : 'The first ' + rows.length + ' of ' + this.count.toLocaleString('en') + ' rows; CSV has '
        + (served && this.count > MOST_ROWS ? 'the first ' + MOST_ROWS.toLocaleString('en') : 'all') + '.';
  };
  function cell(row, value) {
    var made = el('span', { role: 'cell' });
    fill(made, value);
    row.appendChild(made);
    return made;
  }

  // Text of the page itself, which may be empty.
  function told(row, text) {
    var made = el('span', { role: 'cell', title: text }, text);
    row.appendChild(made);
    return made;
  }

  // -- the rows of the instant ---------------------------------------------------------------------

  var panels = {};
  function panelOf(table) {
    if (panels[table.id]) return panels[table.id];
    var box = el('section', { class: 'panel', 'aria-label': 'Rows of ' + labelOf(table) });
    var title = box.appendChild(el('h3', {}, labelOf(table)));
    var count = title.appendChild(el('span', { class: 'count' }));
    var notes = [];
    if (table.hidden.length) notes.push('Not shown: ' + table.hidden.join(', ') + ' (hidden or personal).');
    if (table.horizon) notes.push('Cleaned before ' + positionText(table.axis, BigInt(table.horizon)) + ': earlier rows may be missing.');
    if (notes.length) box.appendChild(el('p', { class: 'note' }, notes.join(' ')));
    var grid = new Grid(box.appendChild(el('div')), 'Rows of ' + labelOf(table));
    var tools = box.appendChild(el('div', { class: 'tools' }));
    var csv = tools.appendChild(el('button', { type: 'button' }, 'CSV'));
    var details = tools.appendChild(el('details'));
    details.appendChild(el('summary', {}, 'dbt call'));
    var code = details.appendChild(el('pre', { tabindex: '0' }));
    var copy = details.appendChild(el('button', { type: 'button' }, 'Copy'));
    var panel = panels[table.id] = { box: box, count: count, grid: grid, code: code, rows: [], table: table };
    panel.sort = function (number) {
      var now = state.sort[table.id];
      // Up, down, then as the table is: by key.
      if (!now || now.column !== number) state.sort[table.id] = { column: number, down: false };
      else if (!now.down) now.down = true;
      else delete state.sort[table.id];
      drawPanel(panel);
      writeLink();
    };
    csv.addEventListener('click', function () { saveRows(panel); });
    copy.addEventListener('click', function () { copyText(code.textContent); });
    return panel;
  }
  function columnsOf(table) {
    return table.key.map(function (name) { return { label: name, width: 110 }; })
      .concat(table.columns.map(function (one) { return { label: one.name, width: one.type === 'timestamp' ? 225 : 130 }; }))
      .concat([{ label: 'from', width: 225 }, { label: 'to, exclusive', width: 225 }]);
  }
  // By key: the row of the second date.
  function rowsThen(table) {
    if (state.than === null) return null;
    var other = new Map();
    inForce(table, placeOf(table.points, state.than)).forEach(function (row) { other.set(table.of[row], row); });
    return other;
  }
  function differs(table, row, before) {
    for (var column = 0; column < table.cells.length; column++) {
      if ('_@'.indexOf(table.columns[column].name[0]) < 0
          && table.cells[column].places[row] !== table.cells[column].places[before]) return true;
    }
    return false;
  }
  // Numbers by value, then texts; NULL first.
  function byValue(type) {
    var isNumber = /^(tinyint|smallint|int|bigint|float|double|decimal|timestamp)/.test(type);
    return function (a, b) { return isNumber ? a - b : a < b ? -1 : a > b ? 1 : 0; };
  }
  // The rank of each row in a column of the list; equal values have one rank.
  function ranks(table, number) {
    var keys = table.key.length, cells = table.columns.length;
    if (number === keys + cells) return table.since;
    if (number === keys + cells + 1) return table.until.map(function (place, row) { return table.open[row] || place < 0 ? 0x7fffffff : place; });
    table.ranks = table.ranks || {};
    if (table.ranks[number]) return table.ranks[number];
    function ranked(values, type) {
      var compare = byValue(type), order = values.map(function (value, place) { return place; }), made = new Int32Array(values.length);
      order.sort(function (a, b) { return compare(values[a], values[b]); });
      order.forEach(function (place, rank) { made[place] = rank; });
      return made;
    }
    if (number < keys) {
      var known = new Map();
      table.keys.forEach(function (key) { if (key[number] !== null) known.set(key[number], 0); });
      var values = Array.from(known.keys()), places = ranked(values, table.keyTypes[number]);
      values.forEach(function (value, place) { known.set(value, places[place]); });
      return table.ranks[number] = table.of.map(function (of) { var value = table.keys[of][number]; return value === null ? -1 : known.get(value); });
    }
    var column = table.cells[number - keys], rank = ranked(column.values, table.columns[number - keys].type);
    return table.ranks[number] = column.places.map(function (place) { return place < 0 ? -1 : rank[place]; });
  }
  function sorted(table, rows) {
    var by = state.sort[table.id];
    if (!by || by.column >= table.key.length + table.columns.length + 2) return rows;
    var rank = ranks(table, by.column), sign = by.down ? -1 : 1;
    return rows.sort(function (a, b) { return sign * (rank[a] - rank[b]) || a - b; });
  }
  function drawPanel(panel) {
    if (served) return drawServed(panel);
    var table = panel.table, wanted = search(table), rows = inForce(table, placeOf(table.points, state.at));
    if (state.find) rows = rows.filter(wanted);
    var other = rowsThen(table), gone = [];
    if (other) {
      var here = new Set();
      inForce(table, placeOf(table.points, state.at)).forEach(function (row) { here.add(table.of[row]); });
      other.forEach(function (row, key) { if (!here.has(key) && wanted(row)) gone.push(row); });
      if (state.only) {
        rows = rows.filter(function (row) {
          var before = other.get(table.of[row]);
          return before === undefined || (before !== row && differs(table, row, before));
        });
      }
    }
    panel.rows = rows = sorted(table, rows);
    panel.gone = gone;
    showPanel(panel, rows.length, gone.length, function (index) {
      var isGone = index >= rows.length, row = isGone ? gone[index - rows.length] : rows[index];
      return { table: table, row: row, isGone: isGone, before: other && !isGone ? other.get(table.of[row]) : row };
    });
  }
  // `itemAt` gives {table, row, before, isGone} of a place in the list; null if it is not known yet.
  function showPanel(panel, count, gone, itemAt) {
    panel.shown = count;
    panel.count.textContent = count.toLocaleString('en') + (count === 1 ? ' row' : ' rows')
      + (gone ? ', ' + gone.toLocaleString('en') + ' only at the second date' : '');
    panel.code.textContent = readerCall(panel.table);
    panel.grid.show(columnsOf(panel.table), count + gone, function (index, row) {
      var one = itemAt(index);
      if (!one) { told(row, '…'); row.dataset.waits = 'yes'; return; }
      var table = one.table, version = one.row, before = one.before;
      if (one.isGone) row.classList.add('is-gone');
      else if (before === undefined) row.classList.add('is-new');
      keyOf(table, version).forEach(function (value, number) {
        var made = el('span', { role: 'cell' }), button = made.appendChild(el('button', { type: 'button', class: 'key' }));
        fill(button, shown(value, table.keyTypes[number]));
        button.setAttribute('aria-label', table.key[number] + ' ' + button.textContent + ': show its versions'
          + (one.isGone ? '; only at the second date' : before === undefined ? '; not there at the second date' : ''));
        button.addEventListener('click', function () { choose(table, version); });
        row.appendChild(made);
      });
      table.columns.forEach(function (column, number) {
        var made = cell(row, shown(cellOf(table, number, version), column.type));
        if (before !== undefined && before !== version
            && table.cells[number].places[version] !== table.cells[number].places[before]) {
          made.classList.add('changed');
          var old = shown(cellOf(table, number, before), column.type);
          made.title = 'at the second date: ' + (old === NULL ? 'NULL' : old);
          made.appendChild(el('span', { class: 'sr' }, ' changed, ' + made.title));
        }
      });
      told(row, positionText(table.axis, pointOf(table, table.since[version])));
      told(row, table.open[version] ? 'open' : positionText(table.axis, pointOf(table, table.until[version])));
    }, state.sort[panel.table.id], panel.sort);
  }

  // -- the server of `explore --serve` -------------------------------------------------------------

  var PAGE = 100;
  function ask(question) {
    return fetch('ask', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(question) })
      .then(function (answer) {
        return answer.json().catch(function () { return { error: 'The server answered ' + answer.status + '.' }; });
      }, function () { return { error: 'The server does not answer: it was stopped, or the connection was lost.' }; })
      .then(function (made) { if (made.error) throw new Error(made.error); return made; });
  }
  // Asks one question at a time; of those that come meanwhile, only the newest is asked.
  function newest() {
    var isBusy = false, waiting = null;
    function send(question, done, failed) {
      if (isBusy) { waiting = [question, done, failed]; return; }
      isBusy = true;
      ask(question).then(done).catch(failed).then(function () {
        isBusy = false;
        var next = waiting;
        waiting = null;
        if (next) send(next[0], next[1], next[2]);
      });
    }
    return send;
  }
  function positionOf(at) { return at === null ? null : String(at); }
  function searched(question) {
    question.find = state.find;
    question.match = state.match;
    question.zone = state.zone;
    return question;
  }
  function rowsQuestion(table) {
    var by = state.sort[table.id], question = searched({ ask: 'rows', table: table.id, at: positionOf(state.at), than: positionOf(state.than), only: state.only });
    if (by) question.sort = by;
    return question;
  }
  // A page of an answer as items of a list.
  function itemsOf(made, isGone) {
    var found = slice(made.slice);
    return made.rows.map(function (pair) {
      var before = isGone || state.than === null ? pair[0] : pair[1] < 0 ? undefined : pair[1];
      return { table: found, row: pair[0], before: before, isGone: isGone };
    });
  }
  function fillPages(pages, name, items) {
    for (var place = 0; place < items.length; place += PAGE) pages[name + place / PAGE] = items.slice(place, place + PAGE);
  }
  // Whether the pages of the first `count` rows were read.
  function hasPages(pages, name, count) {
    for (var number = 0; number * PAGE < count; number++) if (!pages[name + number]) return false;
    return true;
  }
  // Reads what is printed of a list: PRINTED rows, of which a page has PAGE.
  function readPanel(panel) {
    if (!panel.counts) return null;
    var asked = panel.asked, rows = Math.min(panel.counts.rows, PRINTED), gone = Math.min(panel.counts.gone, PRINTED - rows);
    function read(part, count) {
      if (hasPages(panel.pages, part + ' ', count)) return null;
      return ask(Object.assign(rowsQuestion(panel.table), { part: part, count: PRINTED })).then(function (made) {
        if (panel.asked === asked) fillPages(panel.pages, part + ' ', itemsOf(made, part === 'gone'));
      });
    }
    return Promise.all([read('rows', rows), read('gone', gone)]);
  }
  function drawServed(panel) {
    var question = rowsQuestion(panel.table), text = JSON.stringify(question);
    panel.send = panel.send || newest();
    if (panel.answered === text) return showServed(panel);
    if (panel.asked === text) return;
    panel.asked = text;
    panel.missing = false;
    panel.box.setAttribute('aria-busy', 'true');
    function failed(error) {
      if (panel.asked !== text) return;
      panel.asked = panel.answered = null;
      panel.box.removeAttribute('aria-busy');
      panel.counts = { rows: 0, gone: 0 };
      showServed(panel);
      panel.count.textContent = error.message;
      tell();
    }
    function answered() {
      panel.box.removeAttribute('aria-busy');
      showServed(panel);
      tell();
    }
    // The rows come first; those only at the second date take another question.
    panel.send(Object.assign({ counts: true }, question), function (made) {
      if (panel.asked !== text) return;
      panel.answered = text;
      panel.counts = { rows: made.count, gone: 0 };
      panel.pages = { 'rows 0': itemsOf(made, false) };
      if (state.than === null) return answered();
      showServed(panel);
      panel.send(Object.assign({ counts: true, part: 'gone' }, question), function (made) {
        if (panel.asked !== text) return;
        panel.counts.gone = made.count;
        panel.pages['gone 0'] = itemsOf(made, true);
        answered();
      }, failed);
    }, failed);
  }
  function showServed(panel) {
    var counts = panel.counts, asked = panel.asked;
    showPanel(panel, counts.rows, counts.gone, function (index) {
      var isGone = index >= counts.rows, place = isGone ? index - counts.rows : index;
      var number = Math.floor(place / PAGE), name = (isGone ? 'gone ' : 'rows ') + number;
      if (panel.pages[name]) return panel.pages[name][place % PAGE] || null;
      var question = rowsQuestion(panel.table);
      if (panel.missing || panel.asked !== asked) return null;
      panel.missing = true;
      question.part = isGone ? 'gone' : 'rows';
      question.first = number * PAGE;
      // While one scrolls on, the pages in between are not asked for.
      setTimeout(function () {
        if (panel.asked !== asked) return;
        panel.send(question, function (made) {
          panel.missing = false;
          if (panel.asked !== asked) return;
          panel.pages[name] = itemsOf(made, isGone);
          panel.grid.draw();
        }, function (error) { panel.missing = false; panel.pages[name] = []; panel.count.textContent = error.message; });
      }, 60);
      return null;
    });
  }

  // -- the versions of a record --------------------------------------------------------------------

  function choose(table, row) {
    state.chosen = { table: table.id, key: keyOf(table, row) };
    drawVersions();
    writeLink();
    $('versions-title').scrollIntoView({ block: 'nearest' });
  }
  // The rows of the chosen record, and in other tables those with the same values in columns of
  // the same names.
  function chosenRows(table) {
    var chosen = state.chosen, found = [], row;
    var home = data.tables.find(function (one) { return one.id === chosen.table; });
    if (!home) return found;
    var tests = [];
    for (var number = 0; number < home.key.length; number++) {
      var places = placesOfName(table, home.key[number]), inKey = places.key, column = places.cell, wanted = chosen.key[number];
      if (inKey >= 0) tests.push(['key', inKey, wanted]);
      else if (column >= 0) tests.push(['cell', column, wanted === null ? -1 : placeOfValue(table.cells[column], wanted)]);
      else return found;
    }
    var hits = table.keys.map(function (key) {
      return tests.every(function (test) { return test[0] === 'cell' || key[test[1]] === test[2]; });
    });
    for (row = 0; row < table.of.length; row++) {
      if (hits[table.of[row]] && tests.every(function (test) {
        return test[0] === 'key' || table.cells[test[1]].places[row] === test[2];
      })) found.push(row);
    }
    return found;
  }
  // The place of a value; -2, which no row has, if the column does not contain it.
  function placeOfValue(column, wanted) {
    var place = column.values.indexOf(wanted);
    return place < 0 ? -2 : place;
  }
  function draws(axis, at) { return axis === 'number' ? Number(at) : Number(at) / 1000; }
  function keyText(key, types) {
    return key.map(function (value, number) {
      var text = shown(value, types[number]);
      return text === NULL ? 'NULL' : text;
    }).join(', ');
  }
  function keyTextOf(table, row) { return keyText(keyOf(table, row), table.keyTypes); }
  function laneText(table, row) { return labelOf(table) + ' · ' + keyTextOf(table, row); }
  function homeOf() { return data.tables.find(function (one) { return one.id === state.chosen.table; }) || { keyTypes: [] }; }
  function whatChanged(table, row, before) {
    if (before === undefined) return [];
    var found = [];
    table.columns.forEach(function (column, number) {
      if ('_@'.indexOf(column.name[0]) >= 0) return;
      if (table.cells[number].places[row] === table.cells[number].places[before]) return;
      found.push({ column: column.name, old: shown(cellOf(table, number, before), column.type),
        now: shown(cellOf(table, number, row), column.type) });
    });
    return found;
  }
  function changeText(changes) {
    return changes.map(function (one) {
      return one.column + ': ' + (one.old === NULL ? 'NULL' : one.old) + ' → ' + (one.now === NULL ? 'NULL' : one.now);
    }).join('; ');
  }
  function previous(table, row) {
    return row > 0 && table.of[row - 1] === table.of[row] ? row - 1 : undefined;
  }
  function commitOf(table, row) { return table.arrived[row] < 0 ? null : table.commits[table.arrived[row]]; }
  function whoOf(table, row) {
    if (table.whoColumn >= 0) {
      var found = cellOf(table, table.whoColumn, row);
      if (found !== null) return found;
    }
    var commit = commitOf(table, row);
    return commit && commit.author || 'unknown';
  }
  function arrivalText(table, row) {
    var commit = commitOf(table, row);
    if (!commit) return 'unknown';
    return (commit.batch || 'commit ' + commit.version)
      + (table.arrived[row] === 0 && commit.version > 1 ? ' or before' : '')
      + (commit.run ? ', run ' + commit.run : '') + (commit.message ? ': ' + commit.message : '');
  }
  var versionView = null, versionGrid = new Grid($('version-rows'), 'Versions of the record');
  var drawing = 0, sendVersions = newest();
  function rowsOfRecord(found) {
    var rows = [];
    found.forEach(function (table) { chosenRows(table).forEach(function (row) { rows.push([table, row]); }); });
    return rows;
  }
  // The versions come first; which batch wrote them takes the server longer.
  function askVersions() {
    var question = { ask: 'versions', table: state.chosen.table, key: state.chosen.key, tables: tables().map(function (table) { return table.id; }) };
    var text = JSON.stringify(question), found = {};
    function isWanted() { return state.chosen && text === JSON.stringify({ ask: 'versions', table: state.chosen.table, key: state.chosen.key, tables: tables().map(function (table) { return table.id; }) }); }
    function show(made) {
      if (!isWanted()) return;
      var cut = [];
      Object.keys(made.tables).forEach(function (id) {
        found[id] = slice(made.tables[id]);
        if (found[id].isCut) cut.push(found[id].name);
      });
      drawRecord(rowsOfRecord(tables().map(function (table) { return found[table.id]; }).filter(Boolean)));
      if (cut.length) $('version-count').textContent += '; there are more in ' + cut.join(', ');
    }
    function failed(error) { if (isWanted()) $('version-count').textContent = error.message; }
    $('version-count').textContent = 'Reading …';
    sendVersions(question, function (made) {
      show(made);
      question.ask = 'written';
      if (isWanted()) sendVersions(question, show, failed);
    }, failed);
  }
  function drawVersions() {
    $('versions').hidden = !state.chosen;
    if (!state.chosen) return;
    if (served) askVersions();
    else drawRecord(rowsOfRecord(tables()));
  }
  function drawRecord(rows) {
    var lanes = [], gaps = [], bars = [], marks = [], bands = [];
    $('versions-title').textContent = 'Versions of ' + keyText(state.chosen.key, homeOf().keyTypes);
    var low = Infinity, high = -Infinity;
    rows.forEach(function (pair) {
      var since = draws(state.axis, pointOf(pair[0], pair[0].since[pair[1]]));
      low = Math.min(low, since);
      high = Math.max(high, pair[0].open[pair[1]] ? since : draws(state.axis, pointOf(pair[0], pair[0].until[pair[1]])));
    });
    if (!rows.length) { low = draws(state.axis, range[0]); high = draws(state.axis, range[1]); }
    var room = Math.max((high - low) / 8, 1), end = high + room;
    rows.forEach(function (pair, index) {
      var table = pair[0], row = pair[1], lane = laneText(table, row), before = index ? rows[index - 1] : null;
      if (lanes.indexOf(lane) < 0) { if (lanes.length >= LANES) return; lanes.push(lane); }
      var since = draws(table.axis, pointOf(table, table.since[row]));
      var until = table.open[row] ? end : draws(table.axis, pointOf(table, table.until[row]));
      var cells = table.columns.map(function (column, number) {
        return '_@'.indexOf(column.name[0]) >= 0 ? '' : cellOf(table, number, row);
      }).filter(function (value) { return value !== '' && value !== null; });
      bars.push({ lane: lane, since: since, until: until, open: !!table.open[row], late: table.isLate.has(row),
        label: cells.slice(0, 4).join(', ').slice(0, 80), empty: since === until,
        tip: { record: lane, from: positionText(table.axis, pointOf(table, table.since[row])),
          to: table.open[row] ? 'open' : positionText(table.axis, pointOf(table, table.until[row])),
          changed: before && before[0] === table && table.of[before[1]] === table.of[row] ? changeText(whatChanged(table, row, before[1])) : 'first version',
          by: whoOf(table, row), written: arrivalText(table, row) + (table.isLate.has(row) ? ', late' : '') } });
      if (before && before[0] === table && table.of[before[1]] === table.of[row] && table.until[before[1]] >= 0
          && table.until[before[1]] < table.since[row]) {
        gaps.push({ lane: lane, since: draws(table.axis, pointOf(table, table.until[before[1]])), until: since });
      }
      var next = rows[index + 1];
      if ((!next || next[0] !== table || table.of[next[1]] !== table.of[row]) && !table.open[row]) {
        gaps.push({ lane: lane, since: until, until: end });
      }
    });
    // Several tables may have the same tag or horizon: one label.
    function mark(at, text, name) {
      var same = marks.find(function (one) { return one.at === at; });
      if (!same) marks.push({ at: at, text: text, tip: text + ': ' + name });
      else {
        if (same.text.split(', ').indexOf(text) < 0) same.text += ', ' + text;
        same.tip += '; ' + text + ': ' + name;
      }
    }
    tables().forEach(function (table) {
      table.tags.forEach(function (tag) { mark(draws(table.axis, BigInt(tag.at)), 'tag ' + tag.name, table.name); });
      if (table.horizon) mark(draws(table.axis, BigInt(table.horizon)), 'horizon', table.name);
      if (table.axis === 'time') table.suspensions.forEach(function (one) {
        bands.push({ since: Number(BigInt(one[0])) / 1000, until: one[1] ? Number(BigInt(one[1])) / 1000 : end, text: 'suspended: ' + table.name });
      });
    });
    // What lies outside the picture would be drawn at its edge.
    marks = marks.filter(function (one) { return one.at >= low - room / 4 && one.at <= end; });
    bands = bands.filter(function (one) { return one.until > low - room / 4 && one.since < end; });
    var tall = lanes.length * 34, ink = css('--ink'), isTime = state.axis === 'time';
    var zone = state.zone !== 'UTC' && state.zone === own ? state.zone : 'UTC';
    var spec = {
      width: Math.max(240, $('version-chart').clientWidth - 24), autosize: { type: 'fit-x', contains: 'padding' }, height: tall, padding: 4, background: css('--page'),
      title: null,
      data: [{ name: 'bars', values: bars }, { name: 'gaps', values: gaps }, { name: 'marks', values: marks }, { name: 'bands', values: bands }],
      signals: [{ name: 'as_of', value: draws(state.axis, state.at), on: [{
        events: 'pointerdown, [pointerdown, window:pointerup] > window:pointermove!',
        update: "clamp(+invert('x', clamp(x(), 0, width)), " + (low - room / 4) + ', ' + end + ')' }] },
        { name: 'than', value: state.than === null ? null : draws(state.axis, state.than) }],
      scales: [
        { name: 'x', type: isTime ? (zone === 'UTC' ? 'utc' : 'time') : 'linear', domain: [low - room / 4, end], range: 'width', nice: false, zero: false, clamp: true },
        { name: 'y', type: 'band', domain: lanes, range: 'height', paddingInner: 0.25, paddingOuter: 0.1 }],
      axes: [
        { orient: 'bottom', scale: 'x', grid: true, labelOverlap: true, labelFlush: true, tickCount: 6, labelColor: ink, titleColor: ink, gridColor: css('--line'), domainColor: css('--soft'), tickColor: css('--soft'),
          title: isTime ? zone : 'version', titleFontWeight: 'normal',
          format: isTime ? { year: '%Y', quarter: '%b %Y', month: '%b %Y', week: '%-d %b', day: '%-d %b', date: '%-d %b', hours: '%H:%M', minutes: '%H:%M', seconds: '%H:%M:%S', milliseconds: '%S.%L' } : '~d' },
        { orient: 'left', scale: 'y', domain: false, ticks: false, labelLimit: innerWidth < 600 ? 90 : 210, labelColor: ink, labelPadding: 6 }],
      marks: [
        { type: 'rect', from: { data: 'bands' }, encode: { enter: { x: { scale: 'x', field: 'since' }, x2: { scale: 'x', field: 'until' }, y: { value: 0 }, y2: { signal: 'height' }, fill: { value: css('--soft') }, opacity: { value: 0.25 }, tooltip: { field: 'text' } } } },
        { type: 'rule', from: { data: 'gaps' }, encode: { enter: { x: { scale: 'x', field: 'since' }, x2: { scale: 'x', field: 'until' }, y: { scale: 'y', field: 'lane', band: 0.5 }, strokeDash: { value: [2, 4] }, strokeWidth: { value: 2 }, stroke: { value: css('--soft') }, tooltip: { value: 'deleted' } } } },
        { type: 'text', from: { data: 'gaps' }, encode: { enter: { x: { scale: 'x', field: 'since', offset: 6 }, y: { scale: 'y', field: 'lane', band: 0.5, offset: -8 }, text: { value: 'deleted' }, fontSize: { value: 10 }, fontStyle: { value: 'italic' }, fill: { value: css('--soft') } }, update: { limit: { signal: "max(1, scale('x', datum.until) - scale('x', datum.since) - 8)" } } } },
        { type: 'rect', from: { data: 'bars' }, encode: { enter: { x: { scale: 'x', field: 'since' }, x2: { scale: 'x', field: 'until' }, y: { scale: 'y', field: 'lane' }, height: { scale: 'y', band: 1 }, cornerRadius: { value: 2 }, fill: { signal: "datum.open ? '" + css('--open') + "' : '" + css('--closed') + "'" }, stroke: { signal: "datum.empty ? '" + ink + "' : '" + css('--page') + "'" }, tooltip: { field: 'tip' } } } },
        { type: 'symbol', from: { data: 'bars' }, encode: { enter: { x: { scale: 'x', field: 'until', offset: 4 }, y: { scale: 'y', field: 'lane', band: 0.5 }, shape: { value: 'triangle-right' }, size: { signal: 'datum.open ? 300 : 0' }, fill: { value: css('--open') } } } },
        { type: 'text', from: { data: 'bars' }, interactive: false, encode: { enter: { x: { scale: 'x', field: 'since', offset: 6 }, y: { scale: 'y', field: 'lane', band: 0.5 }, baseline: { value: 'middle' }, fontSize: { value: 12 }, fill: { signal: "datum.open ? '" + css('--on-open') + "' : '" + css('--on-closed') + "'" } }, update: { text: { signal: "scale('x', datum.until) - scale('x', datum.since) < 30 ? '' : datum.label" }, limit: { signal: "max(1, scale('x', datum.until) - scale('x', datum.since) - 12)" } } } },
        { type: 'symbol', from: { data: 'bars' }, encode: { enter: { x: { scale: 'x', field: 'since' }, y: { scale: 'y', field: 'lane', offset: 3 }, shape: { value: 'diamond' }, size: { signal: 'datum.late ? 110 : 0' }, fill: { value: css('--late') }, stroke: { value: css('--page') } } } },
        { type: 'rule', from: { data: 'marks' }, encode: { enter: { x: { scale: 'x', field: 'at' }, y: { value: 0 }, y2: { signal: 'height' }, stroke: { value: css('--tag') }, strokeDash: { value: [6, 3] }, strokeWidth: { value: 1.5 }, tooltip: { field: 'tip' } } } },
        { type: 'text', from: { data: 'marks' }, encode: { enter: { x: { scale: 'x', field: 'at', offset: 3 }, y: { value: -4 }, text: { field: 'text' }, fontSize: { value: 10 }, fill: { value: css('--tag') } } } },
        { type: 'rule', encode: { update: { x: { scale: 'x', signal: 'than' }, y: { value: 0 }, y2: { signal: 'height' }, stroke: { value: css('--late') }, strokeDash: { value: [4, 4] }, strokeWidth: { signal: 'than === null ? 0 : 1.5' } } } },
        { type: 'rule', encode: { update: { x: { scale: 'x', signal: 'as_of' }, y: { value: 0 }, y2: { signal: 'height' }, stroke: { value: ink }, strokeWidth: { value: 2 } } } }]
    };
    var number = ++drawing;
    vegaEmbed('#version-chart', spec, { mode: 'vega', actions: false, renderer: 'svg', ast: true }).then(function (made) {
      if (number !== drawing) return made.finalize();
      versionView = made.view;
      var picture = $('version-chart').querySelector('svg');
      if (picture) { picture.setAttribute('role', 'img'); picture.setAttribute('aria-label', 'Time line of ' + bars.length + ' versions; the table below has the same content'); }
      versionView.addSignalListener('as_of', function (name, value) {
        // `moveTo` sets the signal, too, to a position that may be finer than a picture's number.
        if (value === draws(state.axis, state.at)) return;
        var at = isTime ? BigInt(Math.round(value)) * THOUSAND : BigInt(Math.floor(value));
        if (at !== state.at) moveTo(at, true);
      });
      document.documentElement.dataset.drawn = number;
    });
    versionGrid.show([{ label: 'record', width: 170 }, { label: 'from', width: 225 }, { label: 'to, exclusive', width: 225 }, { label: 'changed', width: 300 }, { label: 'by', width: 110 }, { label: 'written by', width: 260 }],
      rows.length, function (index, line) {
        var table = rows[index][0], row = rows[index][1];
        var place = placeOf(table.points, state.at);
        if (table.since[row] <= place && (table.until[row] < 0 || place < table.until[row])) { line.classList.add('is-in-force'); line.setAttribute('aria-current', 'true'); }
        told(line, laneText(table, row));
        told(line, positionText(table.axis, pointOf(table, table.since[row])));
        told(line, table.open[row] ? 'open' : positionText(table.axis, pointOf(table, table.until[row])));
        var before = previous(table, row);
        var isBack = before !== undefined && table.until[before] >= 0 && table.until[before] < table.since[row];
        told(line, (isBack ? 'inserted again after a deletion; ' : '') + (before === undefined ? 'first version' : changeText(whatChanged(table, row, before)) || 'no data column'));
        told(line, whoOf(table, row));
        told(line, (table.isLate.has(row) ? '◆ late, ' : '') + arrivalText(table, row));
      });
    $('version-count').textContent = rows.length.toLocaleString('en') + (rows.length === 1 ? ' version' : ' versions') + (lanes.length >= LANES ? '; the picture has the first ' + LANES + ' records' : '');
    $('version-code').textContent = versionsCall(rows);
    $('version-csv').onclick = function () {
      save('versions.csv', [['record', 'from', 'to, exclusive', 'changed', 'by', 'written by', 'late']].concat(rows.map(function (pair) {
        var table = pair[0], row = pair[1];
        return [laneText(table, row), positionText(table.axis, pointOf(table, table.since[row])),
          table.open[row] ? '' : positionText(table.axis, pointOf(table, table.until[row])),
          changeText(whatChanged(table, row, previous(table, row))), whoOf(table, row), arrivalText(table, row), table.isLate.has(row) ? 'late' : ''];
      })));
    };
  }

  // -- what changed between the two dates ----------------------------------------------------------

  var changeGrid = new Grid($('change-rows'), 'Changes'), change = { total: 0 }, barView = null, bars = 0;
  var MOST_BARS = 400, SLICE = 10;
  // Looks at the rows from `row` on until `deadline`; returns the next row. Begins and ends in
  // [low, high] are changes; an end and a begin at the same instant are an update.
  function findChanges(table, row, low, high, wanted, deadline, found) {
    var of = table.of, starts = table.since, ends = table.until, size = of.length;
    for (; row < size; row++) {
      if ((row & 1023) === 0 && performance.now() > deadline) return row;
      var since = starts[row], until = ends[row];
      if (since === until) continue;
      var begins = since >= low && since <= high, finishes = !table.open[row] && until >= low && until <= high;
      if (!begins && !finishes || !wanted(row)) continue;
      if (begins) {
        var before = row - 1;
        while (before >= 0 && of[before] === of[row] && starts[before] === ends[before]) before--;
        var follows = before >= 0 && of[before] === of[row] && ends[before] === since;
        found.push({ table: table, row: row, place: since, what: follows ? 'update' : 'insert', before: follows ? before : undefined });
      }
      if (finishes) {
        var next = row + 1;
        while (next < size && of[next] === of[row] && starts[next] === ends[next]) next++;
        if (next >= size || of[next] !== of[row] || starts[next] !== until) found.push({ table: table, row: row, place: until, what: 'delete' });
      }
    }
    return row;
  }
  function whoOfChange(table, row, what) {
    if (what !== 'delete') return whoOf(table, row);
    var place = table.endedBy ? table.endedBy.places[row] : -1;
    return place < 0 ? 'unknown' : table.endedBy.values[place];
  }
  function changedBy(one) { return one.what === 'update' ? whatChanged(one.table, one.row, one.before) : []; }
  function atOf(one) { return pointOf(one.table, one.place); }
  function count(into, name, by) { into.set(name, (into.get(name) || 0) + (by || 1)); }
  function options(select, counts, chosen, all) {
    select.replaceChildren(el('option', { value: '' }, all));
    Array.from(counts.entries()).sort(function (a, b) { return b[1] - a[1]; }).slice(0, 200).forEach(function (one) {
      select.appendChild(el('option', { value: one[0] }, one[0] + ' (' + one[1].toLocaleString('en') + ')'));
    });
    if (chosen && !counts.has(chosen)) select.appendChild(el('option', { value: chosen }, chosen + ' (0)'));
    select.value = chosen;
  }
  // The range [from, to) of the changes between the two states: after the earlier date, whose state
  // contains the changes at that date, up to and including the later one.
  function changeLimits() {
    var from = state.than === null ? range[0] - BigInt(1) : state.than, to = state.at;
    if (to < from) { var swap = from; from = to; to = swap; }
    // A call takes no number beyond the greatest bigint.
    return [from, to].map(function (at) { return at < GREATEST ? at + BigInt(1) : GREATEST; });
  }
  // Counts in parts of some milliseconds, so that a move of the line does not wait for it.
  var counting = 0, sendChanges = newest();
  function drawChanges() {
    var limit = changeLimits(), job = ++counting;
    if (served) return askChanges(limit, job);
    var users = new Map(), columns = new Map(), days = new Map(), list = [], found = [];
    var chosen = tables(), number = 0, row = 0, seen = 0, day = '', until = null, order;
    var low = placeOf(points[state.axis], limit[0] - BigInt(1)) + 1, high = placeOf(points[state.axis], limit[1] - BigInt(1));
    var wanted = chosen.map(search), known = points[state.axis];
    function find(deadline) {
      while (number < chosen.length) {
        row = findChanges(chosen[number], row, low, high, wanted[number], deadline, found);
        if (row < chosen[number].of.length) return false;
        number++;
        row = 0;
      }
      return true;
    }
    function look(deadline) {
      for (; seen < found.length; seen++) {
        if ((seen & 255) === 0 && performance.now() > deadline) return false;
        var one = found[seen], isWanted = !state.column;
        one.who = whoOfChange(one.table, one.row, one.what);
        count(users, one.who);
        // The texts of a change are made when its row is drawn.
        for (var column = 0; one.what === 'update' && column < one.table.cells.length; column++) {
          var places = one.table.cells[column].places, name = one.table.columns[column].name;
          if (places[one.row] === places[one.before] || '_@'.indexOf(name[0]) >= 0) continue;
          count(columns, name);
          isWanted = isWanted || name === state.column;
        }
        if (isWanted && (!state.user || one.who === state.user)) list.push(one);
      }
      return true;
    }
    // By place: as many as there are positions, so each is counted and then has its own.
    function sort() {
      var starts = new Int32Array(known.length + 1), made = new Array(list.length);
      list.forEach(function (one) { starts[one.place + 1]++; });
      for (var place = 0; place < known.length; place++) starts[place + 1] += starts[place];
      list.forEach(function (one) { made[starts[one.place]++] = one; });
      order = made;
      seen = 0;
      return true;
    }
    var labels = new Map();
    function label(table) {
      if (!labels.has(table)) labels.set(table, labelOf(table));
      return labels.get(table);
    }
    function perDay(deadline) {
      for (; seen < order.length; seen++) {
        if ((seen & 255) === 0 && performance.now() > deadline) return false;
        var one = order[seen];
        // The text of a day is made once for all changes of a quarter of an hour: no zone changes its day within one.
        if (state.axis !== 'time') day = String(known[one.place]);
        else if (until === null || known[one.place] >= until) {
          var unit = state.zone === 'UTC' ? DAY : QUARTER;
          day = timeText(known[one.place]).slice(0, 10);
          until = (floored(known[one.place], unit) + BigInt(1)) * unit;
        }
        count(days, day + '\u0000' + label(one.table));
      }
      return true;
    }
    var steps = [find, look, sort, perDay];
    (function go() {
      if (job !== counting) return;
      var deadline = performance.now() + SLICE;
      while (steps.length && steps[0](deadline)) {
        steps.shift();
        if (performance.now() > deadline) break;
      }
      if (steps.length) { setTimeout(go, 0); return; }
      showChanges({ total: order.length, at: function (index) { return order[index]; }, all: function () { return Promise.resolve(order); }, users: users, columns: columns, days: days, limit: limit });
    })();
  }
  function askChanges(limit, job) {
    $('changes').removeAttribute('aria-busy');
    if (state.than === null || !tables().length) {
      showChanges({ total: 0, at: function () { return null; }, all: function () { return Promise.resolve([]); }, users: new Map(), columns: new Map(), days: new Map(), limit: limit, text: state.than === null ? 'Choose a second date (Compare with) to count the changes between the two.' : 'Choose a table.' });
      return;
    }
    var question = searched({ ask: 'changes', tables: tables().map(function (table) { return table.id; }), from: String(limit[0]), to: String(limit[1]), user: state.user, column: state.column });
    var pages = {}, isMissing = false;
    function itemsOfChanges(made) {
      var slices = {};
      Object.keys(made.tables).forEach(function (id) { slices[id] = slice(made.tables[id]); });
      return made.changes.map(function (one) {
        var table = slices[one.table], at = BigInt(one.at), key = JSON.stringify(one.key);
        for (var row = table.of.length - 1; row >= 0; row--) {
          var place = one.what === 'delete' ? table.until[row] : table.since[row];
          if (place < 0 || table.since[row] === table.until[row] || table.points[place] !== at || JSON.stringify(keyOf(table, row)) !== key) continue;
          return { table: table, row: row, place: place, what: one.what, before: one.what === 'update' ? previous(table, row) : undefined,
            who: whoOfChange(table, row, one.what) };
        }
        return null;
      });
    }
    $('changes').setAttribute('aria-busy', 'true');
    question.counts = true;
    sendChanges(question, function (made) {
      if (job !== counting) return;
      $('changes').removeAttribute('aria-busy');
      pages[0] = itemsOfChanges(made);
      var names = {};
      data.tables.forEach(function (table) { names[table.id] = labelOf(table); });
      showChanges({ total: made.total, limit: limit, users: new Map(made.users), columns: new Map(made.columns),
        days: new Map(made.days.map(function (one) { return [one[0] + '\u0000' + names[one[1]], one[2]]; })),
        at: function (index) {
          var number = Math.floor(index / PAGE);
          if (pages[number]) return pages[number][index % PAGE] || null;
          if (isMissing || job !== counting) return null;
          isMissing = true;
          sendChanges(Object.assign({}, question, { counts: false, first: number * PAGE }), function (page) {
            isMissing = false;
            pages[number] = itemsOfChanges(page);
            if (job === counting) changeGrid.draw();
          }, function () { isMissing = false; pages[number] = []; });
          return null;
        },
        read: function () {
          return hasPages(pages, '', Math.min(made.total, PRINTED)) ? null : ask(Object.assign({}, question, { counts: false, count: PRINTED })).then(function (page) { fillPages(pages, '', itemsOfChanges(page)); });
        },
        all: function () {
          return ask(Object.assign({}, question, { counts: false, count: MOST_ROWS })).then(function (page) { return itemsOfChanges(page).filter(Boolean); });
        } });
    }, function (error) {
      if (job !== counting) return;
      $('changes').removeAttribute('aria-busy');
      showChanges({ total: 0, at: function () { return null; }, all: function () { return Promise.resolve([]); }, users: new Map(), columns: new Map(), days: new Map(), limit: limit, text: error.message });
    });
  }
  // Bars of days; of months or years where there are too many to see.
  function barsOf(days) {
    var length = 10, made = days;
    function cut() {
      var shorter = new Map();
      made.forEach(function (rows, name) { count(shorter, name.split('\u0000')[0].slice(0, length) + '\u0000' + name.split('\u0000')[1], rows); });
      made = shorter;
    }
    while (state.axis === 'time' && made.size > MOST_BARS && length > 4) { length -= 3; cut(); }
    var sums = new Map();
    made.forEach(function (rows, name) { count(sums, name.split('\u0000')[0], rows); });
    return { most: Math.max.apply(null, [1].concat(Array.from(sums.values()))), rows: Array.from(made.entries()).map(function (one) {
      var names = one[0].split('\u0000');
      return { day: names[0], table: names[1], rows: one[1] };
    }), unit: state.axis !== 'time' ? 'version' : { 10: 'day', 7: 'month', 4: 'year' }[length] };
  }
  function showChanges(view) {
    change = view;
    options($('user'), view.users, state.user, 'all users');
    options($('column'), view.columns, state.column, 'all columns');
    $('change-count').textContent = view.text || view.total.toLocaleString('en') + (view.total === 1 ? ' change' : ' changes')
      + (state.than === null ? '' : ' after ' + positionText(state.axis, view.limit[0] - BigInt(1)) + ',') + ' up to ' + positionText(state.axis, view.limit[1] - BigInt(1));
    changeGrid.show([{ label: state.axis === 'time' ? 'at' : 'version', width: 225 }, { label: 'table', width: 140 }, { label: 'key', width: 140 }, { label: 'what', width: 80 }, { label: 'changed', width: 320 }, { label: 'by', width: 110 }, { label: 'written by', width: 240 }],
      view.total, function (index, line) {
        var one = view.at(index);
        if (!one) { told(line, '…'); line.dataset.waits = 'yes'; return; }
        var table = one.table;
        told(line, positionText(table.axis, atOf(one)));
        told(line, labelOf(table));
        var made = el('span', { role: 'cell' }), button = made.appendChild(el('button', { type: 'button', class: 'key' }, keyTextOf(table, one.row)));
        button.addEventListener('click', function () { choose(table, one.row); });
        line.appendChild(made);
        told(line, one.what);
        told(line, changeText(changedBy(one)));
        told(line, one.who);
        told(line, one.what === 'delete' ? '' : arrivalText(table, one.row));
      });
    $('change-code').textContent = tables().map(function (table) { return changesCall(table, view.limit); }).join('\n\n')
      + (state.user || state.column ? '\n-- without the choice of a user or column' : '');
    var shownBars = barsOf(view.days), rows = shownBars.rows;
    var palette = ['#0072B2', '#E69F00', '#009E73', '#CC79A7', '#56B4E9', '#D55E00', '#F0E442', '#999999'];
    var names = tables().map(labelOf), ink = css('--ink'), number = ++bars;
    $('change-key').replaceChildren.apply($('change-key'), names.map(function (name, place) {
      var made = el('span'), mark = made.appendChild(el('i'));
      mark.style.background = palette[place % palette.length];
      made.appendChild(document.createTextNode(name));
      return made;
    }));
    vegaEmbed('#change-chart', {
      width: Math.max(240, $('change-chart').clientWidth - 24), autosize: { type: 'fit-x', contains: 'padding' }, height: 110, padding: 4, background: css('--page'),
      data: [{ name: 'days', values: rows, transform: [{ type: 'stack', groupby: ['day'], sort: { field: 'table' }, field: 'rows' }] }],
      scales: [{ name: 'x', type: 'band', domain: { data: 'days', field: 'day', sort: true }, range: 'width', padding: 0.15 },
        { name: 'y', domain: [0, shownBars.most], range: 'height', nice: true, zero: true },
        { name: 'c', type: 'ordinal', domain: names, range: palette }],
      axes: [{ orient: 'bottom', scale: 'x', labelOverlap: true, labelColor: ink, domainColor: css('--soft'), tickColor: css('--soft') },
        { orient: 'left', scale: 'y', tickCount: 3, tickMinStep: 1, format: '~s', title: 'changes per ' + shownBars.unit, titleFontWeight: 'normal', titleColor: ink, labelColor: ink, domainColor: css('--soft'), tickColor: css('--soft'), grid: true, gridColor: css('--line') }],
      marks: [{ type: 'rect', from: { data: 'days' }, encode: { enter: { xc: { scale: 'x', field: 'day', band: 0.5 }, width: { signal: "min(60, bandwidth('x'))" }, y: { scale: 'y', field: 'y0' }, y2: { scale: 'y', field: 'y1' }, fill: { scale: 'c', field: 'table' }, stroke: { value: css('--page') }, tooltip: { signal: "{'" + shownBars.unit + "': datum.day, 'table': datum.table, 'changes': datum.rows}" } } } }]
    }, { mode: 'vega', actions: false, renderer: 'svg', ast: true }).then(function (made) {
      if (number !== bars) return made.finalize();
      barView = made.view;
      var picture = $('change-chart').querySelector('svg');
      if (picture) { picture.setAttribute('role', 'img'); picture.setAttribute('aria-label', 'Bars of changes per ' + shownBars.unit + '; the list below has the same content'); }
      document.documentElement.dataset.ready = 'yes';
    });
  }

  // -- copies --------------------------------------------------------------------------------------

  function sqlText(value) {
    // Jinja would read braces.
    return "'" + value.replace(/\\/g, '\\\\').replace(/'/g, "\\'").replace(/\{/g, "{{ '{' }}") + "'";
  }
  function callPoint(at) { return state.axis === 'number' ? String(at) : "'" + utcText(at) + "'"; }
  function utcText(at) { var zone = state.zone; state.zone = 'UTC'; var text = timeText(at); state.zone = zone; return text; }
  function quoted(name) { return '`' + name.replace(/`/g, '``') + '`'; }
  // A column compared with a text of the page as SQL; null where there is no such condition.
  function isValue(name, type, value, isExact) {
    var column = quoted(name);
    if (/^(binary|struct|array|map)/.test(type)) return null;
    if (isExact && /^(tiny|small|big)?int$/.test(type) && /^(0|-?[1-9]\d{0,8})$/.test(value)) return column + ' = ' + value;
    var text = type === 'timestamp' ? 'cast(unix_micros(' + column + ') as string)' : type === 'string' ? column : 'cast(' + column + ' as string)';
    return isExact ? text + ' = ' + sqlText(value) : 'startswith(lower(' + text + '), lower(' + sqlText(value) + '))';
  }
  function hasHiddenKey(table) { return table.key.some(function (name) { return table.hidden.indexOf(name) >= 0; }); }
  // The search as a condition on the key; a comment where it cannot be one.
  function searchSql(table) {
    var text = state.find.trim(), named = termsOf(text), terms;
    if (!text) return '';
    function test(number, wanted) {
      return wanted === 'NULL' ? null : isValue(table.key[number], table.keyTypes[number], wanted, state.match === 'exact');
    }
    if (!named.length) terms = table.key.map(function (name, number) { return test(number, text); });
    else terms = named.map(function (parts) {
      var number = placesOfName(table, parts[0]).key;
      return number < 0 ? null : test(number, parts.slice(1).join('=').trim());
    });
    if (hasHiddenKey(table) || terms.indexOf(null) >= 0) return '\n-- without the search of the page, which is no condition on the key alone';
    return '\nwhere ' + terms.join(named.length ? '\n    and ' : '\n    or ');
  }
  // The chosen record as a condition; a comment where it cannot be one.
  function recordSql(table) {
    var home = homeOf(), terms = home.key.map(function (name, number) {
      var value = state.chosen.key[number], places = placesOfName(table, name);
      var own = places.key >= 0 ? { name: table.key[places.key], type: table.keyTypes[places.key] } : table.columns[places.cell];
      if (!own) return null;
      return value === null ? quoted(own.name) + ' is null' : isValue(own.name, own.type, value, true);
    });
    if (hasHiddenKey(home) || hasHiddenKey(table) || terms.indexOf(null) >= 0) return '\n-- of all records: the key is hidden, or has a type that is not compared';
    return '\nwhere ' + terms.join('\n    and ');
  }
  // The start of a range of dates is rounded up: a day begins at midnight.
  function rangePoint(table, at) {
    return table.pointType === 'date' ? "'" + utcText(at + DAY - BigInt(1)).slice(0, 10) + "'" : callPoint(at);
  }
  // A reader refuses what lies before the horizon; `changeset` the horizon, too.
  function fromHorizon(table, at, after) {
    var least = table.horizon ? BigInt(table.horizon) + BigInt(after || 0) : at;
    return least > at ? least : at;
  }
  function readerText(table) {
    return table.reader === null ? '' : ', ' + (typeof table.reader === 'string' ? "'" + table.reader + "'" : JSON.stringify(table.reader));
  }
  function changesCall(table, limit) {
    return 'select *\nfrom {{ dbt_history.changeset(' + table.call + ', ' + rangePoint(table, fromHorizon(table, limit[0], 1)) + ', ' + rangePoint(table, limit[1]) + readerText(table)
      + ', key=[' + table.key.map(function (name) { return "'" + name.replace(/'/g, "\\'") + "'"; }).join(', ') + ']) }}' + searchSql(table);
  }
  function versionsCall(rows) {
    return tables().map(function (table) {
      var first = null, last = null;
      rows.forEach(function (pair) {
        if (pair[0].id !== table.id) return;
        var at = pointOf(pair[0], pair[0].since[pair[1]]);
        if (first === null || at < first) first = at;
        if (last === null || at > last) last = at;
      });
      if (first === null) return '';
      return 'select *\nfrom {{ dbt_history.between(' + table.call + ', ' + rangePoint(table, fromHorizon(table, first)) + ', ' + rangePoint(table, last + BigInt(1)) + readerText(table) + ') }}' + recordSql(table);
    }).filter(Boolean).join('\n\n');
  }
  function readerCall(table) {
    var at = table.pointType === 'date' ? "'" + utcText(state.at).slice(0, 10) + "'" : callPoint(state.at);
    var text = 'select *\nfrom {{ dbt_history.as_of(' + table.call + ', ' + at + readerText(table) + ') }}' + searchSql(table);
    if (state.than === null) return text;
    return text + (state.only ? '\n-- also the rows that did not change' : '') + '\n\n-- what changed between the two dates\n' + changesCall(table, changeLimits());
  }
  function copyText(text) {
    function old() {
      var area = document.body.appendChild(el('textarea', {}, text));
      area.select();
      document.execCommand('copy');
      area.remove();
    }
    if (navigator.clipboard) navigator.clipboard.writeText(text).catch(old); else old();
    $('status').textContent = 'Copied.';
  }
  // A text that a spreadsheet would run as a formula gets an apostrophe.
  function csvCell(value) {
    var text = value === NULL || value === null || value === undefined ? '' : String(value);
    if (/^[=+\-@\t\r]/.test(text) && !/^[+-]?(\d+\.?\d*|\.\d+|infinity)(e[+-]?\d+)?$/i.test(text)) text = "'" + text;
    return /[",\n\r]/.test(text) || value === '' ? '"' + text.replace(/"/g, '""') + '"' : text;
  }
  function csvText(lines) { return lines.map(function (line) { return line.map(csvCell).join(','); }).join('\r\n') + '\r\n'; }
  function download(name, address) {
    var link = document.body.appendChild(el('a', { href: address, download: name }));
    link.click();
    link.remove();
  }
  function save(name, lines) {
    var address = URL.createObjectURL(new Blob([csvText(lines)], { type: 'text/csv;charset=utf-8' }));
    download(name, address);
    setTimeout(function () { URL.revokeObjectURL(address); }, 10000);
  }
  // The rows in view; with a second date also those only there, and a column that tells which.
  function panelLines(panel, items) {
    var table = panel.table, isCompared = state.than !== null;
    var head = table.key.concat(table.columns.map(function (one) { return one.name; }), ['from', 'to, exclusive'], isCompared ? ['in view'] : []);
    function item(isGone) { return function (row) { return { table: table, row: row, isGone: isGone }; }; }
    return [head].concat((items || panel.rows.map(item(false)).concat(panel.gone.map(item(true)))).map(function (one) {
      var from = one.table, row = one.row;
      return keyOf(from, row).map(function (value, number) { return shown(value, table.keyTypes[number]); })
        .concat(table.columns.map(function (column, number) { return shown(cellOf(from, number, row), column.type); }),
          [positionText(table.axis, pointOf(from, from.since[row])), from.open[row] ? NULL : positionText(table.axis, pointOf(from, from.until[row]))],
          isCompared ? [one.isGone ? 'only at the second date' : 'as of'] : []);
    }));
  }
  function saveRows(panel) {
    var name = labelOf(panel.table) + '.csv';
    if (!served) { save(name, panelLines(panel)); return; }
    $('status').textContent = 'Reading the rows …';
    var question = rowsQuestion(panel.table), isCompared = state.than !== null, items;
    question.count = MOST_ROWS;
    ask(question).then(function (made) {
      items = itemsOf(made, false);
      return isCompared ? ask(Object.assign({}, question, { part: 'gone' })) : null;
    }).then(function (made) {
      if (made) items = items.concat(itemsOf(made, true));
      save(name, panelLines(panel, items));
      $('status').textContent = items.length.toLocaleString('en') + ' rows in ' + name + (items.length < panel.grid.count ? '; the table has more' : '');
    }).catch(function (error) { $('status').textContent = error.message; });
  }
  function savePicture(view, name) {
    if (view) view.toImageURL('png', 2).then(function (address) { download(name, address); });
  }

  // -- controls ------------------------------------------------------------------------------------

  function css(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
  function drawRows() {
    var chosen = tables(), now = $('rows');
    var boxes = chosen.map(function (table) { return panelOf(table).box; });
    if (boxes.length !== now.children.length || boxes.some(function (box, place) { return now.children[place] !== box; })) now.replaceChildren.apply(now, boxes);
    chosen.forEach(function (table) { drawPanel(panels[table.id]); });
    tell();
  }
  function tell() {
    var rows = 0, waits = false;
    tables().forEach(function (table) {
      var panel = panels[table.id];
      rows += panel.shown || 0;
      waits = waits || panel.box.getAttribute('aria-busy') === 'true';
    });
    $('status').textContent = waits ? 'Reading …' : unread + rows.toLocaleString('en') + (rows === 1 ? ' row' : ' rows') + ' as of ' + positionText(state.axis, state.at)
      + (state.axis === 'time' ? ' ' + state.zone : '') + (state.than === null ? '' : '; marked: what differs from ' + positionText(state.axis, state.than));
  }
  var later = 0;
  function moveTo(at, fromChart) {
    state.at = at;
    unread = '';
    if (document.activeElement !== $('at')) $('at').value = positionText(state.axis, state.at);
    slide();
    drawRows();
    if (versionView && !fromChart) versionView.signal('as_of', draws(state.axis, state.at)).runAsync();
    versionGrid.draw();
    clearTimeout(later);
    counting++;
    later = setTimeout(function () { drawChanges(); writeLink(); }, 200);
  }
  function slide() {
    var part = Number((state.at - range[0]) * BigInt(10000) / (range[1] - range[0]));
    $('slider').value = Math.max(0, Math.min(10000, part));
    $('slider').setAttribute('aria-valuetext', positionText(state.axis, state.at));
  }
  // The previous or the next position at which a row of the chosen tables begins or ends.
  function step(by) {
    if (served) {
      ask({ ask: 'step', by: by, at: String(state.at), tables: tables().map(function (table) { return table.id; }) })
        .then(function (made) { if (made.at !== null) moveTo(BigInt(made.at)); }, function (error) { $('status').textContent = error.message; });
      return;
    }
    var known = points[state.axis], place = placeOf(known, state.at), best = -1;
    var from = by < 0 && place >= 0 && known[place] === state.at ? place - 1 : place;
    function see(one) {
      if (one < 0 || (by < 0 ? one > from || one <= best : one <= from || best >= 0 && one >= best)) return;
      best = one;
    }
    tables().forEach(function (table) {
      for (var row = 0; row < table.since.length; row++) {
        see(table.since[row]);
        if (!table.open[row]) see(table.until[row]);
      }
    });
    if (best >= 0) moveTo(known[best]);
  }
  function drawAll() {
    range = limits();
    if (state.at === null) state.at = range[1];
    $('at').value = positionText(state.axis, state.at);
    $('than').value = state.than === null ? '' : positionText(state.axis, state.than);
    $('find').value = state.find;
    $('match').value = state.match;
    $('only').checked = state.only;
    $('zone').value = state.zone;
    $('axis').value = state.axis;
    $('tables').replaceChildren.apply($('tables'), ofAxis().map(function (table) {
      var label = el('label'), box = label.appendChild(el('input', { type: 'checkbox', value: table.id }));
      box.checked = !state.tables || state.tables.indexOf(table.id) >= 0;
      label.appendChild(document.createTextNode(' ' + labelOf(table)));
      label.title = served ? table.count.toLocaleString('en') + ' versions'
        : table.since.length.toLocaleString('en') + ' versions of ' + table.keys.length.toLocaleString('en') + ' records';
      return label;
    }));
    slide();
    drawRows();
    drawVersions();
    // The rows are on the screen before the changes are counted.
    clearTimeout(later);
    later = setTimeout(drawChanges, served ? 300 : 0);
  }
  function typed(input, set) {
    input.addEventListener('change', function () {
      var text = input.value.trim(), at = text ? parsePosition(state.axis, text) : null;
      var isWrong = text !== '' && at === null;
      input.setAttribute('aria-invalid', isWrong);
      if (isWrong) { $('status').textContent = 'Not a ' + (state.axis === 'time' ? 'date such as 2024-03-03 or 2024-03-03 12:00' : 'whole number of 64 bits') + ': ' + text; return; }
      set(at);
    });
  }
  typed($('at'), function (at) { moveTo(at === null ? range[1] : at); });
  typed($('than'), function (at) { state.than = at; unread = ''; drawRows(); drawVersions(); drawChanges(); writeLink(); });
  $('slider').addEventListener('input', function () {
    moveTo(range[0] + (range[1] - range[0]) * BigInt($('slider').value) / BigInt(10000));
  });
  $('back').addEventListener('click', function () { step(-1); });
  $('forth').addEventListener('click', function () { step(1); });
  var finding = 0;
  $('find').addEventListener('input', function () {
    clearTimeout(finding);
    finding = setTimeout(function () { state.find = $('find').value; drawRows(); drawChanges(); writeLink(); }, 120);
  });
  $('match').addEventListener('change', function () { state.match = $('match').value; drawRows(); drawChanges(); writeLink(); });
  $('only').addEventListener('change', function () { state.only = $('only').checked; drawRows(); writeLink(); });
  $('user').addEventListener('change', function () { state.user = $('user').value; drawChanges(); writeLink(); });
  $('column').addEventListener('change', function () { state.column = $('column').value; drawChanges(); writeLink(); });
  $('zone').addEventListener('change', function () { state.zone = $('zone').value; panels = {}; drawAll(); writeLink(); });
  $('axis').addEventListener('change', function () { state.axis = $('axis').value; state.at = state.than = state.tables = state.chosen = null; unread = ''; drawAll(); writeLink(); });
  $('tables').addEventListener('change', function () {
    state.tables = Array.from($('tables').querySelectorAll('input:checked')).map(function (box) { return box.value; });
    range = limits();
    slide();
    drawRows(); drawVersions(); drawChanges(); writeLink();
  });
  $('version-copy').addEventListener('click', function () { copyText($('version-code').textContent); });
  $('change-copy').addEventListener('click', function () { copyText($('change-code').textContent); });
  // Resolves when no list waits for its first page.
  function whenAnswered() {
    return new Promise(function (go) {
      (function look() { if (document.querySelector('[aria-busy=true]')) setTimeout(look, 50); else go(); })();
    });
  }
  // The browser prints at once. With a server, the rows are read before.
  function printPage() {
    if (!served) { print(); return; }
    $('status').textContent = 'Reading the rows to print …';
    whenAnswered().then(function () {
      return Promise.all(tables().map(function (table) { return readPanel(panels[table.id]); }).concat(change.read ? change.read() : []));
    }).then(function () { tell(); print(); }, function (error) { $('status').textContent = error.message; });
  }
  $('print').addEventListener('click', printPage);
  addEventListener('keydown', function (event) {
    if (!served || event.key.toLowerCase() !== 'p' || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey) return;
    event.preventDefault();
    printPage();
  });
  $('link').addEventListener('click', function () { writeLink(); copyText(location.href); });
  $('close').addEventListener('click', function () { state.chosen = null; drawVersions(); writeLink(); $('find').focus(); });
  $('version-png').addEventListener('click', function () { savePicture(versionView, 'versions.png'); });
  $('change-png').addEventListener('click', function () { savePicture(barView, 'changes.png'); });
  $('change-csv').addEventListener('click', function () {
    var was = $('change-count').textContent;
    $('change-count').textContent = was + '; reading all …';
    change.all().then(function (items) { $('change-count').textContent = was; saveChanges(items); },
      function (error) { $('change-count').textContent = error.message; });
  });
  function saveChanges(items) {
    save('changes.csv', [['at', 'table', 'key', 'what', 'changed', 'by', 'written by']].concat(items.map(function (one) {
      return [positionText(state.axis, atOf(one)), labelOf(one.table), keyTextOf(one.table, one.row),
        one.what, changeText(changedBy(one)), one.who, one.what === 'delete' ? '' : arrivalText(one.table, one.row)];
    })));
  }
  addEventListener('hashchange', function () { if (location.hash !== ownHash) { ownHash = location.hash; readLink(); panels = {}; drawAll(); } });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', function () { drawVersions(); drawChanges(); });
  var resizing = 0;
  addEventListener('resize', function () { clearTimeout(resizing); resizing = setTimeout(function () { drawRows(); drawVersions(); drawChanges(); }, 200); });

  ['UTC'].concat(own && own !== 'UTC' ? [own] : [], (Intl.supportedValuesOf ? Intl.supportedValuesOf('timeZone') : []).filter(function (zone) { return zone !== own && zone !== 'UTC'; }))
    .forEach(function (zone) { $('zone').appendChild(el('option', { value: zone }, zone)); });
  axes.forEach(function (axis) { $('axis').appendChild(el('option', { value: axis }, axis === 'time' ? 'times' : 'version numbers')); });
  $('axis-box').hidden = axes.length < 2;
  $('zone-box').hidden = axes.indexOf('time') < 0;
  readLink();
  if (!data.tables.length) { $('status').textContent = 'There is no table.'; return; }
  drawAll();
  document.documentElement.dataset.first = (performance.now() - began).toFixed(1);
  // What a script of the reader's own, or a test, may call.
  window.explore = {
    rows: function (id, at) {
      var table = data.tables.find(function (one) { return one.id === id; });
      return inForce(table, placeOf(table.points, BigInt(at))).map(function (row) { return keyOf(table, row); });
    },
    csv: function () { return tables().map(function (table) { return csvText(panelLines(panels[table.id])); }); },
    moveTo: function (at) { moveTo(BigInt(at)); },
    range: function () { return range.map(String); }
  };
})();
