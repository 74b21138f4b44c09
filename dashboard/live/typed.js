// Asks the dashboard's own server about the string that is typed, and draws the answer. Streamlit
// hears nothing of it, so the page is not rerun.

const DEBOUNCE_MS = 15, FRAME_MS = 300, NAMED = 40, MOST_FRAMES = 200;
const AMOUNTS = ['#440154', '#482475', '#414487', '#355f8d', '#2a788e', '#21918c', '#22a884',
  '#44bf70', '#7ad151', '#bddf26', '#fde725'].map(rgb);  // viridis

function rgb(hex) {
  return [1, 3, 5].map(at => parseInt(hex.slice(at, at + 2), 16));
}

function between(one, other, share) {
  return one.map((value, i) => value + (other[i] - value) * share);
}

function amount(share, [low, high]) {
  const at = (low + share * (high - low)) * (AMOUNTS.length - 1);
  const first = Math.min(Math.floor(at), AMOUNTS.length - 2);
  return between(AMOUNTS[first], AMOUNTS[first + 1], at - first);
}

function svg(name, attributes, text) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function html(name, className) {
  const made = document.createElement(name);
  if (className) made.className = className;
  return made;
}

class Live {
  constructor(root, data) {
    this.root = root;
    this.part = name => root.querySelector(name);
    this.frames = new Map();
    this.begin(data);
    this.part('.typed input').oninput = () => { this.pause(); this.later(); };
    this.part('.film input').oninput = () => { this.pause(); this.later(0); };
    this.part('.play').onclick = () => this.playing ? this.pause() : this.play();
    this.part('.take').onclick = () => this.take(this.string);
    new ResizeObserver(() => this.last && this.drawLine(this.last.line)).observe(this.part('.line'));
  }

  begin(data) {
    const given = !this.data || data.run !== this.data.run || data.string !== this.data.string;
    if (this.data && data.run !== this.data.run) this.frames.clear();
    this.data = data;
    if (!given) return this.last && this.draw(this.last);
    this.pause();
    const slider = this.part('.film input');
    slider.max = data.epochs.length - 1;
    slider.value = data.epochs.indexOf(data.kept);
    this.part('.play').disabled = !data.has_film;
    this.part('.typed input').value = data.string;
    this.part('.said').textContent = 'Asking the model …';
    this.later(0);
  }

  get string() { return this.part('.typed input').value; }
  get epoch() { return this.data.epochs[Number(this.part('.film input').value)]; }

  later(wait = DEBOUNCE_MS) {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.show(), wait);
  }

  async show() {
    const best = this.epoch === this.data.kept ? ' (best)' : '';
    this.part('output').textContent = this.epoch === 0 ? '0 (untrained)' : `${this.epoch}${best}`;
    this.asking?.abort();
    const asking = this.asking = new AbortController();
    const string = this.string, epoch = this.epoch;
    try {
      const answer = await this.answer(string, epoch, asking.signal);
      if (asking === this.asking) this.draw({...answer, string, epoch});
    } catch (error) {
      if (asking === this.asking && error.name !== 'AbortError') this.refuse(error, string);
    }
  }

  async answer(string, epoch, signal) {
    const key = `${epoch} ${string}`;
    if (!this.frames.has(key)) {
      const response = await fetch('live', {
        method: 'POST',
        headers: {'Content-Type': 'application/json'},
        body: JSON.stringify({run: this.data.run, epoch, string}),
        signal,
      });
      const answer = await response.json().catch(() => ({error: 'The server gave no answer.'}));
      if (!response.ok) throw new Error(answer.error);
      if (this.frames.size >= MOST_FRAMES) this.frames.delete(this.frames.keys().next().value);
      this.frames.set(key, answer);
    }
    return this.frames.get(key);
  }

  // All frames are there before the first is shown: they share their axis, and none stutters.
  async play() {
    const button = this.part('.play'), slider = this.part('.film input');
    const film = this.playing = new AbortController();
    const string = this.string, {epochs} = this.data;
    try {
      const frames = [];
      for (const epoch of epochs) {
        button.textContent = `Loading ${frames.length + 1} of ${epochs.length}`;
        frames.push(await this.answer(string, epoch, film.signal));
      }
      this.limits = frames.flatMap(frame => frame.line ? frame.line.values : []);
      button.textContent = 'Pause';
      const start = Number(slider.value) < epochs.length - 1 ? Number(slider.value) : 0;
      for (let at = start; at < epochs.length && film === this.playing; at++) {
        slider.value = at;
        await this.show();
        await new Promise(done => setTimeout(done, FRAME_MS));
      }
    } catch (error) {
      if (error.name !== 'AbortError') this.refuse(error, string);
    }
    if (film === this.playing) this.pause();
  }

  pause() {
    this.playing?.abort();
    this.playing = null;
    this.part('.play').textContent = 'Play epochs';
  }

  refuse(error, string) {
    this.part('.said').textContent = error.message;
    this.part('.figures').classList.add('old');
    this.root.dataset.shown = string;
  }

  draw(answer) {
    this.last = answer;
    const said = this.part('.said');
    said.textContent = answer.said;
    said.classList.toggle('failing', answer.wrong);
    said.style.color = answer.wrong ? this.data.colors.wrong : '';
    this.part('.absent').textContent = answer.absent.join(' ');
    this.part('.figures').classList.remove('old');
    // A few maps stand beside the line, more get rows of their own.
    this.part('.figures').classList.toggle('many', answer.maps.length > 2);
    if (!this.playing) this.limits = null;
    this.drawLine(answer.line);
    this.drawMaps(answer.maps);
    this.root.dataset.shown = answer.string;
    this.root.dataset.epoch = answer.epoch;
  }

  drawLine(line) {
    const figure = this.part('.line'), drawing = figure.querySelector('svg');
    figure.hidden = !line;
    if (!line) return;
    const caption = figure.querySelector('figcaption');
    caption.textContent = line.name;
    drawing.replaceChildren();
    drawing.setAttribute('aria-label', line.name);
    const wide = drawing.clientWidth || 480, tall = 260, left = 44, bottom = 24, top = 8;
    const values = (this.limits ?? line.values).filter(value => value !== null);
    const low = line.zero ? Math.min(0, ...values) : 0;
    const high = line.zero ? Math.max(0, ...values, low + 1e-6) : 1;
    const step = (wide - left - 8) / Math.max(line.values.length, 1);
    const x = i => left + (i + 0.5) * step;
    const y = value => top + (high - value) / (high - low) * (tall - top - bottom);
    for (const value of line.zero ? new Set([low, 0, high]) : [0, 0.5, 1]) {
      const zero = line.zero && value === 0;
      drawing.append(
        svg('line', {x1: left, x2: wide - 8, y1: y(value), y2: y(value), stroke: this.data.colors.grey,
          'stroke-opacity': zero ? 1 : 0.3, 'stroke-dasharray': zero ? '4 4' : 'none'}),
        svg('text', {x: left - 6, y: y(value) + 4, 'text-anchor': 'end'},
          line.zero ? value.toFixed(Math.abs(value) < 10 ? 1 : 0) : `${100 * value}%`));
    }
    const points = line.values.map((value, i) => [i, value]).filter(([, value]) => value !== null);
    drawing.append(svg('polyline', {fill: 'none', stroke: this.data.colors.grey,
      points: points.map(([i, value]) => `${x(i)},${y(value)}`).join(' ')}));
    const every = Math.max(1, Math.ceil(12 / step));
    for (const [i, value] of points) {
      const up = line.zero ? value > 0 : value > 0.5;
      const point = svg('circle', {cx: x(i), cy: y(value), r: Math.min(5, Math.max(1.5, step / 3)),
        fill: this.data.colors[up ? 'towards' : 'away']});
      point.append(svg('title', {}, `${line.tokens[i] || 'nothing yet'}: ${value}`));
      drawing.append(point);
    }
    line.tokens.forEach((token, i) => {
      const shown = line.tokens.length <= NAMED ? token : i % (every * 5) ? '' : `${i}`;
      if (shown) drawing.append(svg('text', {x: x(i), y: tall - 6, 'text-anchor': 'middle'}, shown));
    });
  }

  drawMaps(maps) {
    const place = this.part('.maps');
    place.hidden = !maps.length;
    while (place.children.length > maps.length) place.lastChild.remove();
    while (place.children.length < maps.length) {
      const figure = html('figure');
      figure.append(html('figcaption'), html('canvas'), html('div', 'tokens'));
      place.append(figure);
    }
    maps.forEach((map, i) => this.drawMap(map, place.children[i]));
  }

  drawMap(map, figure) {
    const [caption, canvas, tokens] = figure.children;
    const columns = map.columns.length, rows = map.rows.length;
    caption.textContent = map.name;
    canvas.width = columns;
    canvas.height = rows;
    canvas.style.aspectRatio = `${columns} / ${Math.max(rows, columns / 3)}`;
    const context = canvas.getContext('2d');
    const image = context.createImageData(columns, rows);
    const none = rgb(this.data.background), away = rgb(this.data.colors.away);
    const towards = rgb(this.data.colors.towards);
    map.cells.forEach((part, i) => {
      const share = part / 1000;
      const color = !map.signed ? amount(share, this.data.amounts)
        : between(none, share < 0 ? away : towards, Math.abs(share));
      image.data.set([...color.map(Math.round), 255], 4 * i);
    });
    context.putImageData(image, 0, 0);
    canvas.setAttribute('role', 'img');
    canvas.setAttribute('aria-label', map.name);
    tokens.replaceChildren();
    if (columns <= NAMED) {
      tokens.style.gridTemplateColumns = `repeat(${columns}, 1fr)`;
      map.columns.forEach(token => {
        const name = html('span');
        name.textContent = token.length > 1 && columns > 8 ? '·' : token;
        name.title = token;
        tokens.append(name);
      });
    }
    canvas.onpointermove = event => {
      const column = Math.min(columns - 1, Math.floor(event.offsetX / canvas.clientWidth * columns));
      const row = Math.min(rows - 1, Math.floor(event.offsetY / canvas.clientHeight * rows));
      const value = map.cells[row * columns + column] / 1000 * map.reach;
      const to = map.columns[column] || 'nothing yet';
      caption.textContent = map.signed ? `${map.rows[row]} after ${to}: ${value.toFixed(3)}`
        : `${map.rows[row]} attends to ${to}: ${(100 * value).toFixed(1)}%`;
    };
    canvas.onpointerleave = () => { caption.textContent = map.name; };
  }
}

const shown = new WeakMap();

export default function ({parentElement, data, setTriggerValue}) {
  const root = parentElement.querySelector('.live');
  if (shown.has(root)) shown.get(root).begin(data);
  else shown.set(root, new Live(root, data));
  const live = shown.get(root);
  live.take = string => setTriggerValue('taken', string);
  return () => live.pause();
}
