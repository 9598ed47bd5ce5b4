// Draws the charts of #timeline-data, and synchronizes line, slider and table.
(function () {
  var data = JSON.parse(document.getElementById('timeline-data').textContent);
  function written(at) {
    return data.numbers ? String(Math.floor(at))
      : new Date(at).toISOString().replace('T', ' ').replace(/\.?0*Z$/, '').replace(/:00$/, ':00');
  }
  var options = { mode: 'vega', actions: false, renderer: 'svg' };
  vegaEmbed('#versions', data.versions, options).then(function (shown) {
    var view = shown.view, slider = document.getElementById('as-of');
    var readout = document.getElementById('as-of-text');
    var rows = document.querySelectorAll('#version-rows tbody tr');
    function mark(at) {
      readout.textContent = written(at);
      slider.value = at;
      rows.forEach(function (row) {
        var until = row.dataset.until;
        var isIn = Number(row.dataset.since) <= at && (until === '' || at < Number(until));
        row.classList.toggle('tl-in-force', isIn);
      });
    }
    view.addSignalListener('as_of', function (name, value) { mark(value); });
    slider.addEventListener('input', function () { view.signal('as_of', Number(slider.value)).run(); });
    mark(view.signal('as_of'));
    document.documentElement.dataset.ready = 'yes';
  });
  data.batches.forEach(function (spec, place) { vegaEmbed('#batches-' + place, spec, options); });
})();
