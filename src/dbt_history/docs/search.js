// Search over all pages, in the browser. The index is made when the field is first used.
(function () {
  'use strict';
  var field = document.getElementById('search'), list = document.getElementById('found');
  var count = document.getElementById('found-count'), root = document.documentElement.dataset.root || '';
  var index = null, MOST = 30;
  function parts(text) { return text.split(/[\s\p{P}]+/u).filter(Boolean); }
  function names(text) { return text.match(/\w+_\w+/g) || []; }
  // A name is found as a whole, or by its parts.
  function asked(text) {
    var found = { combineWith: 'AND', queries: [text], tokenize: parts }, whole = names(text);
    return whole.length ? { combineWith: 'OR', queries: [found, { combineWith: 'AND', queries: [text], tokenize: names, boost: { t: 8 } }] } : found;
  }
  function made() {
    if (index) return index;
    index = new MiniSearch({
      fields: ['t', 'x'], storeFields: ['t', 'k', 'u', 'x'],
      tokenize: function (text) { return parts(text).concat(names(text)); },
      searchOptions: { boost: { t: 4 }, prefix: true, fuzzy: function (term) { return term.length > 4 ? 0.2 : false; }, combineWith: 'AND' }
    });
    index.addAll(window.siteIndex.map(function (one, number) { return Object.assign({ id: number }, one); }));
    return index;
  }
  function around(text, terms) {
    var lower = text.toLowerCase(), place = -1;
    terms.forEach(function (term) { var found = lower.indexOf(term); if (found >= 0 && (place < 0 || found < place)) place = found; });
    var from = Math.max(0, place - 40);
    return (from ? '… ' : '') + text.slice(from, from + 140) + (text.length > from + 140 ? ' …' : '');
  }
  function show() {
    var text = field.value.trim(), hits = text ? made().search(asked(text)) : [];
    list.replaceChildren.apply(list, hits.slice(0, MOST).map(function (hit) {
      var item = document.createElement('li'), link = item.appendChild(document.createElement('a'));
      link.href = root + hit.u;
      link.appendChild(document.createElement('b')).textContent = hit.t;
      link.appendChild(document.createElement('i')).textContent = hit.k;
      var words = around(hit.x, hit.terms);
      if (words) link.appendChild(document.createElement('span')).textContent = words;
      return item;
    }));
    list.hidden = !hits.length;
    count.textContent = !text ? '' : hits.length > MOST ? 'The first ' + MOST + ' of ' + hits.length + ' results' : hits.length + (hits.length === 1 ? ' result' : ' results');
  }
  field.addEventListener('input', show);
  addEventListener('keydown', function (event) {
    var links = Array.prototype.slice.call(list.querySelectorAll('a')), at = links.indexOf(document.activeElement);
    var isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName);
    if (event.key === '/' && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) { field.focus(); field.select(); }
    else if (event.key === 'Escape' && (at >= 0 || document.activeElement === field)) { field.value = ''; show(); field.focus(); }
    else if (event.key === 'ArrowDown' && links.length && (at >= 0 || document.activeElement === field)) links[Math.min(at + 1, links.length - 1)].focus();
    else if (event.key === 'ArrowUp' && at >= 0) (at ? links[at - 1] : field).focus();
    else if (event.key === 'Enter' && document.activeElement === field && links.length) links[0].click();
    else return;
    event.preventDefault();
  });
  document.documentElement.dataset.search = 'ready';
})();
