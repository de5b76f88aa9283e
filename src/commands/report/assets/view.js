'use strict';
// The interactive view: all hulls in one buffer, their poses in a texture, a sun with a shadow map.
(() => {
  const figure = document.getElementById('view');
  if (!figure) return;
  const canvas = figure.querySelector('canvas');
  const give_up = (reason) => {
    const words = figure.querySelector('.fallback');
    words.textContent = `The interactive view needs WebGL 2 and a browser from 2023 on (${reason}). The pictures below show the same.`;
    words.hidden = false;
    canvas.hidden = true;
    figure.querySelector('.controls').hidden = true;
    figure.dataset.state = 'fallback';
  };
  const gl = canvas.getContext('webgl2', { antialias: true, alpha: true, premultipliedAlpha: true });
  if (!gl) return give_up('WebGL 2 is missing');
  if (typeof DecompressionStream === 'undefined') return give_up('DecompressionStream is missing');

  const VERTEX = `#version 300 es
    precision highp float; precision highp int; precision highp sampler2D;
    layout(location = 0) in vec3 place;
    layout(location = 1) in float actor;
    uniform sampler2D poses; uniform int first; uniform mat4 camera, light;
    out vec3 world, round_normal, colour; out vec4 lit;
    vec3 turn(vec4 q, vec3 v) { return v + 2.0 * cross(q.xyz, cross(q.xyz, v) + q.w * v); }
    void main() {
      int k = first + int(actor) + gl_InstanceID;
      ivec2 at = ivec2((k % 512) * 3, k / 512);
      vec4 position = texelFetch(poses, at, 0), q = texelFetch(poses, at + ivec2(1, 0), 0);
      colour = texelFetch(poses, at + ivec2(2, 0), 0).rgb;
      round_normal = turn(q, place);
      world = position.xyz + round_normal * position.w;
      lit = light * vec4(world, 1.0);
      gl_Position = camera * vec4(world, 1.0);
    }`;
  const FRAGMENT = `#version 300 es
    precision highp float; precision highp sampler2DShadow;
    in vec3 world, round_normal, colour; in vec4 lit;
    uniform sampler2DShadow shadow; uniform bool smooth_shape; uniform vec3 sun, up, eye; uniform float texel;
    out vec4 pixel;
    void main() {
      vec3 n = normalize(cross(dFdx(world), dFdy(world)));
      if (smooth_shape) n = normalize(round_normal);
      if (dot(n, eye - world) < 0.0) n = -n;
      vec3 s = lit.xyz / lit.w * 0.5 + 0.5;
      float facing = max(dot(n, sun), 0.0), open = 0.0;
      for (int k = 0; k < 9; k++)
        open += texture(shadow, vec3(s.xy + vec2(k % 3 - 1, k / 3 - 1) * texel * 1.4, s.z - 0.0016 - 0.003 * (1.0 - facing)));
      // Near the edge of the light its map is too coarse: fade there instead of flickering.
      open *= smoothstep(0.0, 0.3, facing) / 9.0;
      float sky = 0.62 + 0.38 * dot(n, up);
      vec3 light = vec3(1.62, 1.52, 1.38) * facing * open + vec3(0.80, 0.83, 0.90) * sky * mix(0.5, 0.86, open) + 0.05;
      vec3 c = colour * light;
      c = 1.22 * c * (1.0 + c / 6.25) / (1.0 + c);
      pixel = vec4(pow(clamp(c, 0.0, 1.0), vec3(1.0 / 2.2)), 1.0);
    }`;
  const DARK = `#version 300 es
    precision highp float;
    void main() {}`;

  const program = (fragment) => {
    const made = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
      gl.attachShader(made, shader);
    }
    gl.linkProgram(made);
    if (!gl.getProgramParameter(made, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(made));
    const places = new Map();
    return { made, at: (name) => { if (!places.has(name)) places.set(name, gl.getUniformLocation(made, name)); return places.get(name); } };
  };

  // Small vector and matrix helpers; matrices by columns.
  const minus = (a, b) => a.map((v, k) => v - b[k]), plus = (a, b) => a.map((v, k) => v + b[k]);
  const times = (a, s) => a.map((v) => v * s), dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
  const unit = (a) => times(a, 1 / Math.hypot(...a));
  const multiply = (a, b) => {
    const out = new Float32Array(16);
    for (let c = 0; c < 4; c++) for (let r = 0; r < 4; r++) for (let k = 0; k < 4; k++) out[4 * c + r] += a[4 * k + r] * b[4 * c + k];
    return out;
  };
  const looking = (eye, back, up) => {
    const right = unit(cross(up, back)), top = cross(back, right);
    return [right[0], top[0], back[0], 0, right[1], top[1], back[1], 0, right[2], top[2], back[2], 0, -dot(right, eye), -dot(top, eye), -dot(back, eye), 1];
  };

  const bytes_of = async (text) => {
    const packed = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
    const plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
    return new Uint8Array(await new Response(plain).arrayBuffer());
  };

  // The layout is described in src/report/view.rs.
  const decode = (head, bytes) => {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let at = 0;
    const shapes = head.shapes.map(([points, triangles]) => {
      const vertices = new Int16Array(3 * points), corners = new Uint16Array(3 * triangles);
      for (let k = 0; k < vertices.length; k++, at += 2) vertices[k] = view.getInt16(at, true);
      for (let k = 0; k < corners.length; k++, at += 2) corners[k] = view.getUint16(at, true);
      return { vertices, corners };
    });
    const actors = [];
    for (let k = 0; k < head.actors; k++, at += 12)
      actors.push({
        shape: view.getUint16(at, true), group: view.getUint16(at + 2, true),
        colour: [4, 5, 6].map((byte) => (view.getUint8(at + byte) / 255) ** 2.2), scale: view.getFloat32(at + 8, true),
      });
    const count = head.actors, frames = [];
    let before = Array.from({ length: 7 }, () => new Uint16Array(count));
    for (let frame = 0; frame < head.times.length; frame++) {
      const now = before.map((column) => {
        const own = new Uint16Array(count);
        for (let k = 0; k < count; k++) own[k] = column[k] + (bytes[at + k] | bytes[at + count + k] << 8);
        at += 2 * count;
        return own;
      });
      frames.push(now);
      before = now;
    }
    return { shapes, actors, frames };
  };

  const start = async () => {
    const head = JSON.parse(figure.querySelector('.head').textContent);
    const { shapes, actors, frames } = decode(head, await bytes_of(figure.querySelector('.body').textContent));
    const count = actors.length, times_of = head.times;
    const main = program(FRAGMENT), shade = program(DARK);

    // One buffer for all: shapes of many actors once, to be drawn as instances; the others once for each actor.
    const uses = new Map();
    actors.forEach((actor, k) => { if (!uses.has(actor.shape)) uses.set(actor.shape, []); uses.get(actor.shape).push(k); });
    let vertex_count = 0, corner_count = 0;
    for (const [shape, list] of uses) {
      const copies = list.length > 6 ? 1 : list.length;
      vertex_count += copies * shapes[shape].vertices.length / 3;
      corner_count += copies * shapes[shape].corners.length;
    }
    const buffer = new ArrayBuffer(12 * vertex_count), places = new Int16Array(buffer), owners = new Float32Array(buffer);
    const indices = new Uint32Array(corner_count);
    const draws = [];
    let vertex = 0, corner = 0;
    const copy = (shape, owner) => {
      const first = vertex;
      for (let k = 0; k < shape.vertices.length; k += 3, vertex++) {
        for (let axis = 0; axis < 3; axis++) places[6 * vertex + axis] = shape.vertices[k + axis];
        owners[3 * vertex + 2] = owner;
      }
      for (const k of shape.corners) indices[corner++] = first + k;
    };
    for (const [shape, list] of [...uses].sort((a, b) => b[1].length - a[1].length)) {
      const begin = corner, instanced = list.length > 6;
      if (instanced) copy(shapes[shape], 0); else list.forEach((k) => copy(shapes[shape], k));
      const last = draws[draws.length - 1], smooth = head.smooth[shape];
      if (!instanced && last && !last.instanced && last.smooth === smooth) last.length += corner - begin;
      else draws.push({ instanced, smooth, begin, length: corner - begin, first: instanced ? list[0] : 0, instances: instanced ? list.length : 1 });
    }
    const hulls = gl.createVertexArray();
    gl.bindVertexArray(hulls);
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ARRAY_BUFFER, buffer, gl.STATIC_DRAW);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 3, gl.SHORT, true, 12, 0);
    gl.enableVertexAttribArray(1);
    gl.vertexAttribPointer(1, 1, gl.FLOAT, false, 12, 8);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, indices, gl.STATIC_DRAW);

    const wall_points = [];
    for (const wall of head.walls)
      for (let k = 1; k + 1 < wall.length; k++) wall_points.push(...wall[0], ...wall[k], ...wall[k + 1]);
    const walls = gl.createVertexArray();
    gl.bindVertexArray(walls);
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(wall_points), gl.STATIC_DRAW);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 3, gl.FLOAT, false, 12, 0);
    gl.bindVertexArray(null);

    // Three texels for each actor: position and size, quaternion, colour. The last one is the walls'.
    const rows = Math.ceil((count + 1) / 512);
    const poses = new Float32Array(512 * 3 * 4 * rows);
    const texture = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, texture);
    gl.texStorage2D(gl.TEXTURE_2D, 1, gl.RGBA32F, 512 * 3, rows);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
    poses.set([0, 0, 0, 1, 0, 0, 0, 1, 0.65, 0.62, 0.55, 1], 12 * count);

    const extent = minus(head.high, head.low), unit_of = extent.map((e) => e / 65534);
    let coloured = 'own';
    const ramp = [[0.16, 0.16, 0.36], [0.13, 0.42, 0.56], [0.15, 0.68, 0.5], [0.78, 0.82, 0.2], [0.98, 0.55, 0.15]];
    const ramped = (share) => {
      const at = Math.min(0.9999, Math.max(0, share)) * (ramp.length - 1), k = Math.floor(at);
      return ramp[k].map((low, axis) => (low + (ramp[k + 1][axis] - low) * (at - k)) ** 2.2);
    };
    const apart = (a, b, k) => Math.hypot(...[0, 1, 2].map((axis) => (b[axis][k] - a[axis][k]) * unit_of[axis]));
    let fastest = 0;
    for (let f = 0; f + 1 < frames.length; f++)
      for (let k = 0; k < count; k += Math.ceil(count / 2000))
        if (frames[f][0][k] !== 65535 && frames[f + 1][0][k] !== 65535)
          fastest = Math.max(fastest, apart(frames[f], frames[f + 1], k) / (times_of[f + 1] - times_of[f]));
    const pose = (when) => {
      const f = Math.min(Math.max(0, frames.length - 2), Math.floor(when)), a = frames[f], b = frames[Math.min(f + 1, frames.length - 1)];
      const part = Math.min(1, when - f), span = times_of[Math.min(f + 1, frames.length - 1)] - times_of[f];
      for (let k = 0; k < count; k++) {
        const to = 12 * k, gone = (part < 0.5 ? a : b)[0][k] === 65535;
        const mix = a[0][k] === 65535 ? 1 : b[0][k] === 65535 ? 0 : part;
        for (let axis = 0; axis < 3; axis++) poses[to + axis] = head.low[axis] + (a[axis][k] + (b[axis][k] - a[axis][k]) * mix) * unit_of[axis];
        poses[to + 3] = gone ? 0 : actors[k].scale;
        let size = 0;
        for (let c = 0; c < 4; c++) {
          const from = a[3 + c][k] << 16 >> 16, into = b[3 + c][k] << 16 >> 16;
          const value = from + (into - from) * mix;
          poses[to + 4 + c] = value;
          size += value * value;
        }
        size = Math.sqrt(size) || 1;
        for (let c = 0; c < 4; c++) poses[to + 4 + c] /= size;
        const colour = coloured === 'speed' && span > 0 ? ramped(Math.sqrt(apart(a, b, k) / span / (fastest || 1))) : actors[k].colour;
        for (let c = 0; c < 3; c++) poses[to + 8 + c] = colour[c];
      }
      gl.bindTexture(gl.TEXTURE_2D, texture);
      gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, 0, 512 * 3, rows, gl.RGBA, gl.FLOAT, poses);
    };

    const SHADOW = 2048;
    const depth = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, depth);
    gl.texStorage2D(gl.TEXTURE_2D, 1, gl.DEPTH_COMPONENT24, SHADOW, SHADOW);
    for (const [name, value] of [[gl.TEXTURE_MIN_FILTER, gl.LINEAR], [gl.TEXTURE_MAG_FILTER, gl.LINEAR], [gl.TEXTURE_COMPARE_MODE, gl.COMPARE_REF_TO_TEXTURE],
      [gl.TEXTURE_COMPARE_FUNC, gl.LEQUAL], [gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE], [gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE]]) gl.texParameteri(gl.TEXTURE_2D, name, value);
    const shadow_frame = gl.createFramebuffer();
    gl.bindFramebuffer(gl.FRAMEBUFFER, shadow_frame);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.DEPTH_ATTACHMENT, gl.TEXTURE_2D, depth, 0);
    gl.drawBuffers([gl.NONE]);

    // Where the bodies are at the end is what one wants to see first.
    const up = head.up, last = frames[frames.length - 1];
    let low = [...head.high], high = [...head.low];
    for (let k = 0; k < count; k++) {
      if (last[0][k] === 65535) continue;
      for (let axis = 0; axis < 3; axis++) {
        const middle = head.low[axis] + last[axis][k] * unit_of[axis];
        low[axis] = Math.max(head.low[axis], Math.min(low[axis], middle - actors[k].scale));
        high[axis] = Math.min(head.high[axis], Math.max(high[axis], middle + actors[k].scale));
      }
    }
    const helper = Math.abs(up[1]) > 0.9 ? [1, 0, 0] : [0, 1, 0];
    const right = unit(cross(helper, up)), ahead = cross(up, right);
    const centre = times(plus(head.low, head.high), 0.5), radius = Math.max(1e-6, Math.hypot(...extent) / 2);
    const own = { azimuth: -1.0, elevation: 0.42, target: times(plus(low, high), 0.5), distance: 1.72 * Math.max(radius / 50, Math.hypot(...minus(high, low))) };
    let camera = { ...own };
    const back_of = () => {
      const level = plus(times(right, Math.cos(camera.azimuth)), times(ahead, Math.sin(camera.azimuth)));
      return plus(times(level, Math.cos(camera.elevation)), times(up, Math.sin(camera.elevation)));
    };

    const draw_all = (used, front) => {
      gl.bindVertexArray(hulls);
      for (const draw of draws) {
        gl.uniform1i(used.at('first'), draw.first);
        if (front) gl.uniform1i(used.at('smooth_shape'), draw.smooth ? 1 : 0);
        gl.drawElementsInstanced(gl.TRIANGLES, draw.length, gl.UNSIGNED_INT, 4 * draw.begin, draw.instances);
      }
      if (front && wall_points.length) {
        gl.bindVertexArray(walls);
        gl.vertexAttrib1f(1, 0);
        gl.uniform1i(used.at('first'), count);
        gl.uniform1i(used.at('smooth_shape'), 0);
        gl.drawArrays(gl.TRIANGLES, 0, wall_points.length / 3);
      }
      gl.bindVertexArray(null);
    };

    let due = false;
    const render = () => {
      due = false;
      const width = Math.max(1, Math.round(canvas.clientWidth * Math.min(2, devicePixelRatio)));
      const height = Math.max(1, Math.round(canvas.clientHeight * Math.min(2, devicePixelRatio)));
      if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
      const back = back_of(), eye = plus(camera.target, times(back, camera.distance));
      const level = unit(minus(back, times(up, dot(back, up))));
      const sun = unit(plus(plus(up, times(level, 0.35)), times(cross(up, level), -0.62)));
      const reach = radius * 1.02, far = looking(plus(centre, times(sun, 2 * reach)), sun, Math.abs(dot(sun, helper)) > 0.99 ? right : helper);
      const light = multiply([1 / reach, 0, 0, 0, 0, 1 / reach, 0, 0, 0, 0, -1 / reach, 0, 0, 0, -2, 1], far);
      const near = Math.max(camera.distance / 400, camera.distance - 4 * radius), end = camera.distance + 4 * radius, focal = 3.4;
      const lens = [focal * height / width, 0, 0, 0, 0, focal, 0, 0, 0, 0, (end + near) / (near - end), -1, 0, 0, 2 * end * near / (near - end), 0];
      gl.enable(gl.DEPTH_TEST);
      gl.enable(gl.CULL_FACE);
      gl.activeTexture(gl.TEXTURE0);
      gl.bindTexture(gl.TEXTURE_2D, texture);
      gl.activeTexture(gl.TEXTURE1);
      gl.bindTexture(gl.TEXTURE_2D, null);
      gl.bindFramebuffer(gl.FRAMEBUFFER, shadow_frame);
      gl.viewport(0, 0, SHADOW, SHADOW);
      gl.clear(gl.DEPTH_BUFFER_BIT);
      gl.useProgram(shade.made);
      gl.uniform1i(shade.at('poses'), 0);
      gl.uniformMatrix4fv(shade.at('camera'), false, light);
      draw_all(shade, false);
      gl.bindFramebuffer(gl.FRAMEBUFFER, null);
      gl.viewport(0, 0, width, height);
      gl.clearColor(0, 0, 0, 0);
      gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
      gl.useProgram(main.made);
      gl.bindTexture(gl.TEXTURE_2D, depth);
      gl.uniform1i(main.at('poses'), 0);
      gl.uniform1i(main.at('shadow'), 1);
      gl.uniform1f(main.at('texel'), 1 / SHADOW);
      gl.uniformMatrix4fv(main.at('camera'), false, multiply(lens, looking(eye, back, up)));
      gl.uniformMatrix4fv(main.at('light'), false, light);
      gl.uniform3fv(main.at('sun'), sun);
      gl.uniform3fv(main.at('up'), up);
      gl.uniform3fv(main.at('eye'), eye);
      draw_all(main, true);
      gl.activeTexture(gl.TEXTURE0);
    };
    const redraw = () => { if (!due) { due = true; requestAnimationFrame(render); } };

    const slider = figure.querySelector('input'), output = figure.querySelector('output'), play = figure.querySelector('.play');
    const time_at = (when) => {
      const f = Math.min(frames.length - 1, Math.floor(when)), next = Math.min(frames.length - 1, f + 1);
      return times_of[f] + (times_of[next] - times_of[f]) * (when - f);
    };
    const show = (when) => {
      slider.value = when;
      const time = time_at(when);
      output.textContent = `t = ${Number(time.toPrecision(4))} s`;
      slider.setAttribute('aria-valuetext', output.textContent);
      pose(when);
      redraw();
      dispatchEvent(new CustomEvent('breccia-time', { detail: time }));
    };
    slider.addEventListener('input', () => show(Number(slider.value)));
    let playing = null;
    const stop = () => { cancelAnimationFrame(playing); playing = null; play.textContent = '▶'; play.setAttribute('aria-label', 'Play'); };
    play.addEventListener('click', () => {
      if (playing !== null) return stop();
      play.textContent = '❚❚';
      play.setAttribute('aria-label', 'Pause');
      const whole = frames.length - 1, seconds = Math.min(12, Math.max(3, whole / 10));
      let from = Number(slider.value) >= whole ? 0 : Number(slider.value), begun = null;
      const go = (stamp) => {
        begun ??= stamp;
        const when = Math.min(whole, from + (stamp - begun) / 1000 * whole / seconds);
        show(when);
        if (when >= whole) return stop();
        playing = requestAnimationFrame(go);
      };
      playing = requestAnimationFrame(go);
    });
    addEventListener('breccia-seek', (event) => {
      let f = 0;
      while (f + 1 < times_of.length && times_of[f + 1] <= event.detail) f++;
      const span = (times_of[f + 1] ?? times_of[f]) - times_of[f];
      show(Math.min(frames.length - 1, f + (span > 0 ? Math.max(0, (event.detail - times_of[f]) / span) : 0)));
    });
    figure.querySelector('select').addEventListener('change', (event) => { coloured = event.target.value; show(Number(slider.value)); });
    figure.querySelector('.reset').addEventListener('click', () => { camera = { ...own }; redraw(); });

    const bound = (value, least, most) => Math.min(most, Math.max(least, value));
    const orbit = (x, y) => { camera.azimuth -= x; camera.elevation = bound(camera.elevation + y, -1.5, 1.5); redraw(); };
    const zoom = (factor) => { camera.distance = bound(camera.distance * factor, radius / 30, radius * 20); redraw(); };
    const fingers = new Map();
    canvas.addEventListener('pointerdown', (event) => { canvas.setPointerCapture(event.pointerId); fingers.set(event.pointerId, event); });
    const lift = (event) => fingers.delete(event.pointerId);
    canvas.addEventListener('pointerup', lift);
    canvas.addEventListener('pointercancel', lift);
    canvas.addEventListener('pointermove', (event) => {
      const before = fingers.get(event.pointerId);
      if (!before) return;
      const x = event.clientX - before.clientX, y = event.clientY - before.clientY;
      if (fingers.size === 2) {
        const other = [...fingers.values()].find((finger) => finger.pointerId !== event.pointerId);
        const spread = (finger) => Math.hypot(finger.clientX - other.clientX, finger.clientY - other.clientY) || 1;
        zoom(spread(before) / spread(event));
      } else if (event.shiftKey || event.buttons & 2) {
        const back = back_of(), side = unit(cross(up, back)), scale = camera.distance / canvas.clientHeight * 0.6;
        camera.target = plus(camera.target, plus(times(side, -x * scale), times(cross(back, side), y * scale)));
        redraw();
      } else orbit(x / 180, y / 180);
      fingers.set(event.pointerId, event);
    });
    canvas.addEventListener('contextmenu', (event) => event.preventDefault());
    // Scrolling the page must not zoom: only a view that was clicked zooms.
    canvas.addEventListener('wheel', (event) => {
      if (document.activeElement !== canvas) return;
      event.preventDefault();
      zoom(Math.exp(event.deltaY / 700));
    }, { passive: false });
    canvas.addEventListener('keydown', (event) => {
      const turn = { ArrowLeft: [0.1, 0], ArrowRight: [-0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[event.key];
      if (turn) orbit(...turn);
      else if (event.key === '+' || event.key === '=') zoom(0.9);
      else if (event.key === '-') zoom(1 / 0.9);
      else return;
      event.preventDefault();
    });
    new ResizeObserver(redraw).observe(canvas);
    canvas.addEventListener('webglcontextlost', (event) => { event.preventDefault(); give_up('the graphics context was lost'); });

    show(Number(slider.value));
    if (frames.length < 2) figure.querySelector('.controls').hidden = true;
    // What share of the first image is covered: for tests, and to notice a driver that draws nothing.
    render();
    const pixels = new Uint8Array(4 * canvas.width * canvas.height);
    gl.readPixels(0, 0, canvas.width, canvas.height, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
    let covered = 0;
    for (let k = 3; k < pixels.length; k += 4) covered += pixels[k] > 0 ? 1 : 0;
    figure.dataset.coverage = (covered / (canvas.width * canvas.height)).toFixed(4);
    figure.dataset.error = gl.getError();
    figure.dataset.state = 'ready';
  };
  start().catch((error) => { give_up(error.message); console.error(error); });
})();
