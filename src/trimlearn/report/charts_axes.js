// Scales: from values to pixels and back, with few round ticks.
(function (charts) {
  "use strict";

  /** A scale is linear in f(value). "signed" is a logarithm on both sides of 0, and linear within a unit or two of it. */
  function shape({ shape: name, unit = 1 }) {
    if (name === "log") return { f: (v) => Math.log10(v), back: (u) => 10 ** u };
    if (name !== "signed") return { f: (v) => v, back: (u) => u };
    return { f: (v) => Math.asinh(v / unit / 2), back: (u) => 2 * unit * Math.sinh(u) };
  }

  /** The round step of about `count` steps between two numbers. */
  function stepOf(low, high, count) {
    const raw = (high - low) / Math.max(1, count);
    const power = 10 ** Math.floor(Math.log10(raw));
    return power * [1, 2, 5, 10].find((m) => m * power >= raw * 0.75);
  }

  function evenTicks(low, high, count) {
    if (!(high > low)) return [low];
    const step = stepOf(low, high, count);
    const first = Math.ceil(low / step - 1e-9);
    const last = Math.floor(high / step + 1e-9);
    return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
  }

  function logTicks(low, high, count) {
    const [from, to] = [Math.floor(low), Math.ceil(high)];
    const inside = (v) => v >= 10 ** low * 0.9999 && v <= 10 ** high * 1.0001;
    for (const digits of [[1, 2, 5], [1, 3], [1]]) {
      const ticks = [];
      for (let e = from; e <= to; e++) ticks.push(...digits.map((d) => d * 10 ** e).filter(inside));
      if (ticks.length <= count + 2 || digits.length === 1) {
        if (ticks.length < 3) return evenTicks(10 ** low, 10 ** high, count).filter((v) => v > 0);
        const every = Math.ceil(ticks.length / (count + 2));
        return ticks.filter((_, i) => i % every === 0);
      }
    }
    return [];
  }

  function signedTicks(a, b, unit, count) {
    const far = Math.max(Math.abs(a), Math.abs(b));
    if (far < 10 * unit) return evenTicks(a, b, count);
    const [first, last] = [Math.ceil(Math.log10(unit)), Math.floor(Math.log10(far))];
    const sides = a < 0 && b > 0 ? 2 : 1;
    const every = Math.max(1, Math.ceil((sides * (last - first + 1)) / (count + 1)));
    const ticks = [0];
    for (let e = last; e >= first; e -= every) ticks.push(10 ** e, -(10 ** e));
    const inside = (list) => list.filter((v) => v >= a && v <= b).sort((u, v) => u - v);
    if (every === 1 && inside(ticks).length < count) ticks.push(...ticks.slice(1).map((v) => 3 * v));
    return inside(ticks).length < 3 ? evenTicks(a, b, count) : inside(ticks);
  }

  /** The scale of an axis, between f(low) and f(high), drawn between two pixels. */
  function scale(axis, [low, high], [from, to]) {
    const { f, back } = shape(axis);
    const per = (to - from) / (high - low || 1);
    return {
      range: [low, high],
      of: (v) => from + (f(v) - low) * per,
      invert: (px) => back(low + (px - from) / per),
      raw: (px) => low + (px - from) / per,
      ticks(count) {
        if (axis.shape === "log") return logTicks(low, high, count);
        if (axis.shape === "signed") return signedTicks(back(low), back(high), axis.unit || 1, count);
        return evenTicks(low, high, count);
      },
    };
  }

  /** f(least) and f(largest) of an axis, with a little room. */
  function extent(values, axis, include = []) {
    const { f } = shape(axis);
    let [low, high] = [Infinity, -Infinity];
    for (const list of [values, include]) {
      for (const value of list) {
        if (value === null || (axis.shape === "log" && value <= 0)) continue;
        const u = f(value);
        if (u < low) low = u;
        if (u > high) high = u;
      }
    }
    if (low > high) [low, high] = [0, 1];
    const zero = axis.zero && axis.shape !== "log";
    if (zero) [low, high] = [Math.min(0, low), Math.max(0, high)];
    if (low === high) [low, high] = [low - 0.5, high + 0.5];
    const room = 0.05 * (high - low);
    return [zero && low === 0 ? 0 : low - room, zero && high === 0 ? 0 : high + room];
  }

  const plain = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 12 }); // slow to make, quick to use
  const superscript = (e) => String(e).replace("-", "⁻").replace(/\d/g, (d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d]);

  /** A number for people: 12,300; 0.0042; −3; 10⁷. */
  function say(value, digits = 3) {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    let text;
    if (size !== 0 && (size >= 1e7 || size < 1e-4)) {
      const power = Math.floor(Math.log10(size) + 1e-9);
      const lead = Number((value / 10 ** power).toPrecision(Math.min(digits, 3)));
      text = (Math.abs(lead) === 1 ? (lead < 0 ? "-" : "") : `${lead} · `) + `10${superscript(power)}`;
    } else {
      const precise = size >= 10 ** digits ? Math.round(value) : Number(value.toPrecision(digits));
      text = plain.format(precise);
    }
    return text.replace("-", "−");
  }

  Object.assign(charts, { scale, shape, extent, say });
})(window.trimlearnCharts);
