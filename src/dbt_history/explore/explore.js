// Draws the page from #explore-data. Text from the tables is only ever set as text, never as HTML.
(function () {
  'use strict';
  var began = performance.now();
  var data = JSON.parse(document.getElementById('explore-data').textContent);
  var ROW = 30, LANES = 60, NULL = {};
  function $(id) { return document.getElementById(id); }
  function el(tag, attributes, text) {
    var made = document.createElement(tag);
    for (var name in attributes || {}) made.setAttribute(name, attributes[name]);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  // -- the data: positions are places in a sorted list ---------------------------------------------

  var points = {};
  ['time', 'number'].forEach(function (axis) {
    var sum = BigInt(0);
    points[axis] = data.points[axis].map(function (step) { return sum += BigInt(step); });
  });
  data.tables.forEach(function (table) {
    table.since = Int32Array.from(table.since);
    table.until = Int32Array.from(table.until);
    table.of = Int32Array.from(table.of);
    table.cells.forEach(function (column) { column.places = Int32Array.from(column.places); });
    table.isLate = new Set(table.late);
    table.whoColumn = table.columns.findIndex(function (one) { return one.name === table.who; });
    table.id = table.schema + '.' + table.name;
  });
  // The place of the last point that is not after `at`; -1 if all are.
  function placeOf(axis, at) {
    var known = points[axis], low = 0, high = known.length;
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
  function pointOf(table, place) { return points[table.axis][place]; }

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
  var THOUSAND = BigInt(1000), MILLION = BigInt(1000000), QUARTER = BigInt(900000000);
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
      text = p.year + '-' + p.month + '-' + p.day + ' ' + p.hour + ':' + p.minute + ':' + p.second;
    }
    return text + (fraction ? '.' + fraction : '');
  }
  function positionText(axis, at) { return axis === 'number' ? String(at) : timeText(at); }
  // Text of the chosen zone as a position; null if it is none.
  function parsePosition(axis, text) {
    text = text.trim();
    if (axis === 'number') return /^-?\d{1,18}$/.test(text) ? BigInt(text) : null;
    var found = /^(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)?( ?Z| UTC)?$/.exec(text);
    if (!found) return null;
    var wanted = Date.UTC(+found[1], +found[2] - 1, +found[3], +(found[4] || 0), +(found[5] || 0), +(found[6] || 0));
    if (new Date(wanted).getUTCDate() !== +found[3] || +(found[4] || 0) > 23) return null;
    var ms = wanted;
    if (state.zone !== 'UTC' && !found[8]) {
      for (var round = 0; round < 3; round++) {
        var p = parts(ms, state.zone);
        ms += wanted - Date.UTC(+p.year, +p.month - 1, +p.day, +p.hour, +p.minute, +p.second);
      }
    }
    return BigInt(ms) * THOUSAND + BigInt((found[7] || '').padEnd(6, '0'));
  }
  function shown(text, type) {
    if (text === null) return NULL;
    return type === 'timestamp' ? timeText(BigInt(text)) : text;
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
    match: 'prefix', chosen: null, only: false, user: '', column: '' };
  function readLink() {
    var link = new URLSearchParams(location.hash.slice(1));
    function position(name) { return /^-?\d{1,18}$/.test(link.get(name) || '') ? BigInt(link.get(name)) : null; }
    if (axes.indexOf(link.get('axis')) >= 0) state.axis = link.get('axis');
    state.tables = link.has('tables') ? link.getAll('tables') : null;
    state.at = position('at');
    state.than = position('than');
    state.find = link.get('find') || '';
    state.match = link.get('match') === 'exact' ? 'exact' : 'prefix';
    state.only = link.has('only');
    state.user = link.get('user') || '';
    state.column = link.get('column') || '';
    try { new Intl.DateTimeFormat('en', { timeZone: link.get('zone') || 'UTC' }); state.zone = link.get('zone') || 'UTC'; }
    catch (error) { state.zone = 'UTC'; }
    try { state.chosen = JSON.parse(link.get('key')); } catch (error) { state.chosen = null; }
    if (!state.chosen || typeof state.chosen.table !== 'string' || !Array.isArray(state.chosen.key)) state.chosen = null;
  }
  function writeLink() {
    var link = new URLSearchParams();
    if (axes.length > 1) link.set('axis', state.axis);
    (state.tables || []).forEach(function (id) { link.append('tables', id); });
    if (state.at !== null) link.set('at', state.at);
    if (state.than !== null) link.set('than', state.than);
    if (state.find) link.set('find', state.find);
    if (state.match === 'exact') link.set('match', 'exact');
    if (state.only) link.set('only', '1');
    if (state.user) link.set('user', state.user);
    if (state.column) link.set('column', state.column);
    if (state.zone !== 'UTC') link.set('zone', state.zone);
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

  // `12` looks at the key; `space=roads, id=7` at several columns.
  function search(table) {
    var text = state.find.trim(), tests = [];
    if (!text) return function () { return true; };
    function matches(value, wanted) {
      if (value === null) return wanted === 'NULL';
      return state.match === 'exact' ? value === wanted : value.toLowerCase().indexOf(wanted.toLowerCase()) === 0;
    }
    var terms = text.indexOf('=') < 0 ? [] : text.split(',').map(function (term) { return term.split('='); });
    if (!terms.length) {
      var hits = table.keys.map(function (key) { return key.some(function (value) { return matches(value, text); }); });
      return function (row) { return hits[table.of[row]]; };
    }
    terms.forEach(function (term) {
      var name = term[0].trim().toLowerCase(), wanted = term.slice(1).join('=').trim();
      var inKey = table.key.findIndex(function (one) { return one.toLowerCase() === name; });
      var column = table.columns.findIndex(function (one) { return one.name.toLowerCase() === name; });
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
    host.addEventListener('scroll', function () { grid.draw(); });
    addEventListener('beforeprint', function () { grid.draw(500); });
    addEventListener('afterprint', function () { grid.draw(); });
  }
  Grid.prototype.show = function (columns, count, drawRow) {
    var head = this.head;
    var text = columns.map(function (one) { return one.label; }).join('\u0000');
    if (text !== this.headText) {
      this.headText = text;
      head.textContent = '';
      columns.forEach(function (one) {
        head.appendChild(el('span', { role: 'columnheader', title: one.label }, one.label));
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
  Grid.prototype.draw = function (printed) {
    if (!this.drawRow) return;
    var first = printed ? 0 : Math.max(0, Math.floor(this.host.scrollTop / ROW) - 4);
    var most = printed || Math.ceil((this.host.clientHeight || 400) / ROW) + 8;
    var rows = document.createDocumentFragment();
    for (var place = first; place < Math.min(this.count, first + most); place++) {
      var row = el('div', { role: 'row', class: 'grid-row', 'aria-rowindex': place + 2 });
      row.style.top = place * ROW + 'px';
      this.drawRow(place, row);
      rows.appendChild(row);
    }
    this.space.replaceChildren(rows);
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
    var box = el('section', { class: 'panel', 'aria-label': 'Rows of ' + table.name });
    var title = box.appendChild(el('h3', {}, table.name));
    var count = title.appendChild(el('span', { class: 'count' }));
    var notes = [];
    if (table.hidden.length) notes.push('Not shown: ' + table.hidden.join(', ') + ' (hidden or personal).');
    if (table.horizon) notes.push('Cleaned before ' + positionText(table.axis, BigInt(table.horizon)) + ': earlier rows may be missing.');
    if (notes.length) box.appendChild(el('p', { class: 'note' }, notes.join(' ')));
    var grid = new Grid(box.appendChild(el('div')), 'Rows of ' + table.name);
    var tools = box.appendChild(el('div', { class: 'tools' }));
    var csv = tools.appendChild(el('button', { type: 'button' }, 'CSV'));
    var details = tools.appendChild(el('details'));
    details.appendChild(el('summary', {}, 'dbt call'));
    var code = details.appendChild(el('pre', { tabindex: '0' }));
    var copy = details.appendChild(el('button', { type: 'button' }, 'Copy'));
    var panel = panels[table.id] = { box: box, count: count, grid: grid, code: code, rows: [], table: table };
    csv.addEventListener('click', function () { saveRows(panel); });
    copy.addEventListener('click', function () { copyText(code.textContent); });
    return panel;
  }
  function columnsOf(table) {
    return table.key.map(function (name) { return { label: name, width: 110 }; })
      .concat(table.columns.map(function (one) { return { label: one.name, width: one.type === 'timestamp' ? 190 : 130 }; }))
      .concat([{ label: 'from', width: 190 }, { label: 'to, exclusive', width: 190 }]);
  }
  function compare(panel, place) {
    // By key: the row of the second date.
    var table = panel.table, other = new Map();
    panel.other = null;
    if (state.than === null) return;
    inForce(table, placeOf(table.axis, state.than)).forEach(function (row) { other.set(table.of[row], row); });
    panel.other = other;
  }
  function differs(table, row, before) {
    for (var column = 0; column < table.cells.length; column++) {
      if ('_@'.indexOf(table.columns[column].name[0]) < 0
          && table.cells[column].places[row] !== table.cells[column].places[before]) return true;
    }
    return false;
  }
  function drawPanel(panel) {
    var table = panel.table, wanted = search(table), place = placeOf(table.axis, state.at);
    var rows = inForce(table, place);
    if (state.find) rows = rows.filter(wanted);
    compare(panel, place);
    var gone = [];
    if (panel.other) {
      var here = new Set();
      rows.forEach(function (row) { here.add(table.of[row]); });
      panel.other.forEach(function (row, key) { if (!here.has(key) && wanted(row)) gone.push(row); });
      if (state.only) {
        rows = rows.filter(function (row) {
          var before = panel.other.get(table.of[row]);
          return before === undefined || (before !== row && differs(table, row, before));
        });
      }
    }
    panel.rows = rows;
    panel.gone = gone;
    panel.count.textContent = rows.length.toLocaleString('en') + (rows.length === 1 ? ' row' : ' rows')
      + (gone.length ? ', ' + gone.length.toLocaleString('en') + ' only at the second date' : '');
    panel.code.textContent = readerCall(table);
    panel.grid.show(columnsOf(table), rows.length + gone.length, function (index, row) {
      var isGone = index >= rows.length;
      var version = isGone ? gone[index - rows.length] : rows[index];
      var before = panel.other && !isGone ? panel.other.get(table.of[version]) : version;
      if (isGone) row.classList.add('is-gone');
      else if (panel.other && before === undefined) row.classList.add('is-new');
      keyOf(table, version).forEach(function (value, number) {
        var made = el('span', { role: 'cell' }), button = made.appendChild(el('button', { type: 'button', class: 'key' }));
        fill(button, shown(value, table.keyTypes[number]));
        button.setAttribute('aria-label', table.key[number] + ' ' + button.textContent + ': show its versions'
          + (isGone ? '; only at the second date' : row.classList.contains('is-new') ? '; not there at the second date' : ''));
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
      var name = home.key[number].toLowerCase(), wanted = chosen.key[number];
      var inKey = table.key.findIndex(function (one) { return one.toLowerCase() === name; });
      var column = table.columns.findIndex(function (one) { return one.name.toLowerCase() === name; });
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
  function laneText(table, row) {
    return table.name + ' · ' + keyOf(table, row).map(function (value, number) {
      var text = shown(value, table.keyTypes[number]);
      return text === NULL ? 'NULL' : text;
    }).join(', ');
  }
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
  var drawing = 0;
  function drawVersions() {
    $('versions').hidden = !state.chosen;
    if (!state.chosen) return;
    var rows = [], lanes = [], gaps = [], bars = [], marks = [], bands = [], late = [];
    tables().forEach(function (table) {
      var found = chosenRows(table);
      found.forEach(function (row) { rows.push([table, row]); });
    });
    $('versions-title').textContent = 'Versions of ' + state.chosen.key.map(function (value) { return value === null ? 'NULL' : value; }).join(', ');
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
        { type: 'text', from: { data: 'bars' }, interactive: false, encode: { enter: { x: { scale: 'x', field: 'since', offset: 6 }, y: { scale: 'y', field: 'lane', band: 0.5 }, baseline: { value: 'middle' }, fontSize: { value: 12 }, text: { field: 'label' }, fill: { signal: "datum.open ? '" + css('--on-open') + "' : '" + css('--on-closed') + "'" } }, update: { limit: { signal: "max(1, scale('x', datum.until) - scale('x', datum.since) - 12)" } } } },
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
        var at = isTime ? BigInt(Math.round(value)) * THOUSAND : BigInt(Math.floor(value));
        if (at !== state.at) moveTo(at, true);
      });
      document.documentElement.dataset.drawn = number;
    });
    versionGrid.show([{ label: 'record', width: 170 }, { label: 'from', width: 180 }, { label: 'to, exclusive', width: 180 }, { label: 'changed', width: 300 }, { label: 'by', width: 110 }, { label: 'written by', width: 260 }],
      rows.length, function (index, line) {
        var table = rows[index][0], row = rows[index][1];
        var place = placeOf(table.axis, state.at);
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

  var changeGrid = new Grid($('change-rows'), 'Changes'), changes = [], barView = null, bars = 0;
  // Begins and ends in [from, to); an end and a begin at the same instant are an update.
  function changesOf(table, from, to) {
    var found = [], low = placeOf(table.axis, from - BigInt(1)) + 1, high = placeOf(table.axis, to - BigInt(1));
    var wanted = search(table);
    for (var row = 0; row < table.of.length; row++) {
      if (table.since[row] === table.until[row]) continue;
      var before = previous(table, row), since = table.since[row];
      while (before !== undefined && table.since[before] === table.until[before]) before = previous(table, before);
      var follows = before !== undefined && table.until[before] === since;
      if (since >= low && since <= high && wanted(row)) found.push({ table: table, row: row, place: since, what: follows ? 'update' : 'insert', before: follows ? before : undefined });
      var until = table.until[row];
      if (table.open[row] || until < low || until > high || !wanted(row)) continue;
      var next = row + 1;
      while (next < table.of.length && table.of[next] === table.of[row] && table.since[next] === table.until[next]) next++;
      if (next >= table.of.length || table.of[next] !== table.of[row] || table.since[next] !== until) {
        found.push({ table: table, row: row, place: until, what: 'delete' });
      }
    }
    return found;
  }
  function changedBy(one) { return one.what === 'update' ? whatChanged(one.table, one.row, one.before) : []; }
  function count(into, name) { into.set(name, (into.get(name) || 0) + 1); }
  function options(select, counts, chosen, all) {
    select.replaceChildren(el('option', { value: '' }, all));
    Array.from(counts.entries()).sort(function (a, b) { return b[1] - a[1]; }).slice(0, 200).forEach(function (one) {
      select.appendChild(el('option', { value: one[0] }, one[0] + ' (' + one[1].toLocaleString('en') + ')'));
    });
    if (chosen && !counts.has(chosen)) select.appendChild(el('option', { value: chosen }, chosen + ' (0)'));
    select.value = chosen;
  }
  function drawChanges() {
    var from = state.than === null ? range[0] : state.than, to = state.at;
    if (to < from) { var swap = from; from = to; to = swap; }
    if (state.than === null) to = to + BigInt(1);
    var users = new Map(), columns = new Map(), days = new Map();
    changes = [];
    tables().forEach(function (table) {
      changesOf(table, from, to).forEach(function (one) {
        var isWanted = !state.column;
        one.who = one.what === 'delete' ? 'unknown' : whoOf(table, one.row);
        count(users, one.who);
        // The texts of a change are made when its row is drawn.
        for (var number = 0; one.what === 'update' && number < table.cells.length; number++) {
          var places = table.cells[number].places, name = table.columns[number].name;
          if (places[one.row] === places[one.before] || '_@'.indexOf(name[0]) >= 0) continue;
          count(columns, name);
          isWanted = isWanted || name === state.column;
        }
        if (isWanted && (!state.user || one.who === state.user)) changes.push(one);
      });
    });
    var known = points[state.axis], day = '', until = null;
    changes.sort(function (a, b) { return a.place - b.place; });
    changes.forEach(function (one) {
      // The text of a day is made once for all changes of a quarter of an hour: no zone changes its day within one.
      if (state.axis !== 'time') day = String(known[one.place]);
      else if (until === null || known[one.place] >= until) {
        day = timeText(known[one.place]).slice(0, 10);
        until = (floored(known[one.place], QUARTER) + BigInt(1)) * QUARTER;
      }
      count(days, day + '\u0000' + one.table.name);
    });
    options($('user'), users, state.user, 'all users');
    options($('column'), columns, state.column, 'all columns');
    $('change-count').textContent = changes.length.toLocaleString('en') + (changes.length === 1 ? ' change' : ' changes')
      + ' from ' + positionText(state.axis, from) + ' to ' + positionText(state.axis, to);
    changeGrid.show([{ label: state.axis === 'time' ? 'at' : 'version', width: 180 }, { label: 'table', width: 140 }, { label: 'key', width: 140 }, { label: 'what', width: 80 }, { label: 'changed', width: 320 }, { label: 'by', width: 110 }, { label: 'written by', width: 240 }],
      changes.length, function (index, line) {
        var one = changes[index], table = one.table;
        told(line, positionText(table.axis, known[one.place]));
        told(line, table.name);
        var made = el('span', { role: 'cell' }), button = made.appendChild(el('button', { type: 'button', class: 'key' }, laneText(table, one.row).slice(table.name.length + 3)));
        button.addEventListener('click', function () { choose(table, one.row); });
        line.appendChild(made);
        told(line, one.what);
        told(line, changeText(changedBy(one)));
        told(line, one.who);
        told(line, one.what === 'delete' ? '' : arrivalText(table, one.row));
      });
    var rows = Array.from(days.entries()).map(function (one) {
      var names = one[0].split('\u0000');
      return { day: names[0], table: names[1], rows: one[1] };
    });
    var palette = ['#0072B2', '#E69F00', '#009E73', '#CC79A7', '#56B4E9', '#D55E00', '#F0E442', '#999999'];
    var names = tables().map(function (table) { return table.name; }), ink = css('--ink'), number = ++bars;
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
        { name: 'y', domain: { data: 'days', field: 'y1' }, range: 'height', nice: true, zero: true },
        { name: 'c', type: 'ordinal', domain: names, range: palette }],
      axes: [{ orient: 'bottom', scale: 'x', labelOverlap: true, labelColor: ink, domainColor: css('--soft'), tickColor: css('--soft') },
        { orient: 'left', scale: 'y', tickCount: 3, format: '~s', title: 'changes', titleFontWeight: 'normal', titleColor: ink, labelColor: ink, domainColor: css('--soft'), tickColor: css('--soft'), grid: true, gridColor: css('--line') }],
      marks: [{ type: 'rect', from: { data: 'days' }, encode: { enter: { xc: { scale: 'x', field: 'day', band: 0.5 }, width: { signal: "min(60, bandwidth('x'))" }, y: { scale: 'y', field: 'y0' }, y2: { scale: 'y', field: 'y1' }, fill: { scale: 'c', field: 'table' }, stroke: { value: css('--page') }, tooltip: { signal: "{'day': datum.day, 'table': datum.table, 'changes': datum.rows}" } } } }]
    }, { mode: 'vega', actions: false, renderer: 'svg', ast: true }).then(function (made) {
      if (number !== bars) return made.finalize();
      barView = made.view;
      var picture = $('change-chart').querySelector('svg');
      if (picture) { picture.setAttribute('role', 'img'); picture.setAttribute('aria-label', 'Bars of changes; ' + rows.length + ' days and tables'); }
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
  function readerCall(table) {
    var reader = table.reader === null ? '' : ', ' + (typeof table.reader === 'string' ? "'" + table.reader + "'" : JSON.stringify(table.reader));
    var at = table.pointType === 'date' ? "'" + utcText(state.at).slice(0, 10) + "'" : callPoint(state.at);
    var text = 'select *\nfrom {{ dbt_history.as_of(' + table.call + ', ' + at + reader + ') }}';
    if (state.chosen && state.chosen.table === table.id && !table.key.some(function (name) { return table.hidden.indexOf(name) >= 0; })) {
      text += '\nwhere ' + table.key.map(function (name, number) {
        var value = state.chosen.key[number], type = table.keyTypes[number];
        var column = '`' + name.replace(/`/g, '``') + '`';
        if (value === null) return column + ' is null';
        if (type === 'timestamp') return column + " = timestamp'" + utcText(BigInt(value)) + " UTC'";
        return column + ' = ' + (/^(tiny|small|big)?int$/.test(type) ? value : sqlText(value));
      }).join('\n    and ');
    }
    return text;
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
    if (/^[=+\-@\t\r]/.test(text) && !/^[+-]?\d+(\.\d+)?$/.test(text)) text = "'" + text;
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
  function panelLines(panel) {
    var table = panel.table;
    var head = table.key.concat(table.columns.map(function (one) { return one.name; }), ['from', 'to, exclusive']);
    return [head].concat(panel.rows.map(function (row) {
      return keyOf(table, row).map(function (value, number) { return shown(value, table.keyTypes[number]); })
        .concat(table.columns.map(function (column, number) { return shown(cellOf(table, number, row), column.type); }),
          [positionText(table.axis, pointOf(table, table.since[row])), table.open[row] ? NULL : positionText(table.axis, pointOf(table, table.until[row]))]);
    }));
  }
  function saveRows(panel) { save(panel.table.name + '.csv', panelLines(panel)); }
  function savePicture(view, name) {
    if (view) view.toImageURL('png', 2).then(function (address) { download(name, address); });
  }

  // -- controls ------------------------------------------------------------------------------------

  function css(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
  function drawRows() {
    var chosen = tables(), rows = 0, now = $('rows');
    var boxes = chosen.map(function (table) { return panelOf(table).box; });
    if (boxes.length !== now.children.length || boxes.some(function (box, place) { return now.children[place] !== box; })) now.replaceChildren.apply(now, boxes);
    chosen.forEach(function (table) { drawPanel(panels[table.id]); rows += panels[table.id].rows.length; });
    $('status').textContent = rows.toLocaleString('en') + (rows === 1 ? ' row' : ' rows') + ' as of ' + positionText(state.axis, state.at)
      + (state.axis === 'time' ? ' ' + state.zone : '') + (state.than === null ? '' : '; marked: what differs from ' + positionText(state.axis, state.than));
  }
  var later = 0;
  function moveTo(at, fromChart) {
    state.at = at;
    if (document.activeElement !== $('at')) $('at').value = positionText(state.axis, state.at);
    slide();
    drawRows();
    if (versionView && !fromChart) versionView.signal('as_of', draws(state.axis, state.at)).runAsync();
    versionGrid.draw();
    clearTimeout(later);
    later = setTimeout(function () { drawChanges(); writeLink(); }, 200);
  }
  function slide() {
    var part = Number((state.at - range[0]) * BigInt(10000) / (range[1] - range[0]));
    $('slider').value = Math.max(0, Math.min(10000, part));
    $('slider').setAttribute('aria-valuetext', positionText(state.axis, state.at));
  }
  // The previous or the next position at which a row of the chosen tables begins or ends.
  function step(by) {
    var known = points[state.axis], place = placeOf(state.axis, state.at), best = -1;
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
      label.appendChild(document.createTextNode(' ' + table.name));
      label.title = table.since.length.toLocaleString('en') + ' versions of ' + table.keys.length.toLocaleString('en') + ' records';
      return label;
    }));
    slide();
    drawRows();
    drawVersions();
    // The rows are on the screen before the changes are counted.
    clearTimeout(later);
    later = setTimeout(drawChanges, 0);
  }
  function typed(input, set) {
    input.addEventListener('change', function () {
      var text = input.value.trim(), at = text ? parsePosition(state.axis, text) : null;
      var isWrong = text !== '' && at === null;
      input.setAttribute('aria-invalid', isWrong);
      if (isWrong) { $('status').textContent = 'Not a ' + (state.axis === 'time' ? 'date such as 2024-03-03 or 2024-03-03 12:00' : 'number') + ': ' + text; return; }
      set(at);
    });
  }
  typed($('at'), function (at) { moveTo(at === null ? range[1] : at); });
  typed($('than'), function (at) { state.than = at; drawRows(); drawVersions(); drawChanges(); writeLink(); });
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
  $('axis').addEventListener('change', function () { state.axis = $('axis').value; state.at = state.than = state.tables = state.chosen = null; drawAll(); writeLink(); });
  $('tables').addEventListener('change', function () {
    state.tables = Array.from($('tables').querySelectorAll('input:checked')).map(function (box) { return box.value; });
    range = limits();
    slide();
    drawRows(); drawVersions(); drawChanges(); writeLink();
  });
  $('link').addEventListener('click', function () { writeLink(); copyText(location.href); });
  $('close').addEventListener('click', function () { state.chosen = null; drawVersions(); writeLink(); $('find').focus(); });
  $('version-png').addEventListener('click', function () { savePicture(versionView, 'versions.png'); });
  $('change-png').addEventListener('click', function () { savePicture(barView, 'changes.png'); });
  $('change-csv').addEventListener('click', function () {
    save('changes.csv', [['at', 'table', 'key', 'what', 'changed', 'by', 'written by']].concat(changes.map(function (one) {
      return [positionText(state.axis, points[state.axis][one.place]), one.table.name, laneText(one.table, one.row).slice(one.table.name.length + 3),
        one.what, changeText(changedBy(one)), one.who, one.what === 'delete' ? '' : arrivalText(one.table, one.row)];
    })));
  });
  addEventListener('hashchange', function () { if (location.hash !== ownHash) { readLink(); panels = {}; drawAll(); } });
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
      return inForce(table, placeOf(table.axis, BigInt(at))).map(function (row) { return keyOf(table, row); });
    },
    csv: function () { return tables().map(function (table) { return csvText(panelLines(panels[table.id])); }); },
    moveTo: function (at) { moveTo(BigInt(at)); },
    range: function () { return range.map(String); }
  };
})();
