/* calculator.js - the calculator of docs/choosing.md: k, kappa and s for a wanted error, and the time on a GPU.
 *
 * plan() is src/tasks/plan.c and embedding.c in JavaScript; tests/site/test_site.py compares it with `flashsketch plan`.
 * `measured` is in measured.js, from the records. */
"use strict";

const planner = (() => {
    const BLOCK = 128, SMALL_ERROR = 0.25, FEWEST_ROWS = 8, MOST_ROWS = 2147483647;
    const TRACY_WIDOM_MEAN = -1.2065;

    /* Of src/tasks/embedding.c: kappa, nonzeros, means and 95th percentiles over a Gaussian's at k = 2, 4, ...,
     * 128 n, in blocks of 128 rows. */
    const FIRST = 2, COLUMNS = 64;
    const table = [
        [1, 4, [1.01, 1.06, 1.12, 1.23, 1.36, 1.53, 1.67], [1.09, 1.21, 1.29, 1.50, 1.80, 2.05, 2.65]],
        [1, 8, [1.00, 1.01, 1.06, 1.13, 1.24, 1.40, 1.56], [1.00, 1.07, 1.20, 1.36, 1.51, 1.77, 2.19]],
        [2, 8, [1.01, 1.00, 1.02, 1.09, 1.16, 1.27, 1.43], [1.06, 1.03, 1.08, 1.21, 1.38, 1.58, 1.82]],
        [2, 16, [1.00, 1.00, 1.00, 1.04, 1.08, 1.18, 1.31], [1.00, 1.00, 1.03, 1.11, 1.21, 1.36, 1.58]],
        [4, 32, [1.00, 1.00, 1.00, 1.00, 1.03, 1.07, 1.16], [1.00, 1.00, 1.00, 1.01, 1.08, 1.18, 1.34]],
    ];

    /* erfc(x) for x >= 0: a power series, and a continued fraction from 2 on. */
    function erfcOf(x) {
        if (x < 2) {
            let term = x, sum = x;
            for (let i = 1; i < 200 && Math.abs(term) > 1e-18; i++) {
                term *= -x * x / i;
                sum += term / (2 * i + 1);
            }
            return 1 - 2 / Math.sqrt(Math.PI) * sum;
        }
        let tail = x;
        for (let i = 80; i > 0; i--) tail = x + i / 2 / tail;
        return Math.exp(-x * x) / Math.sqrt(Math.PI) / tail;
    }
    const erfc = x => x >= 0 ? erfcOf(x) : 2 - erfcOf(-x);

    function normalQuantile(p) {
        let low = -40, high = 40;
        for (let i = 0; i < 80; i++) {
            const middle = (low + high) / 2;
            if (0.5 * erfc(middle / Math.SQRT2) > p) low = middle;
            else high = middle;
        }
        return low;
    }

    function tracyWidomQuantile(p) {
        const shape = 46.446, scale = 0.186054, shift = 9.84801;
        const cube = 1 - 1 / (9 * shape) + normalQuantile(p) / (3 * Math.sqrt(shape));
        return shape * cube * cube * cube * scale - shift;
    }

    /* kappa and s of a goal {coherent, error} at k: those of the rungs default, high and gaussian. */
    function specOf(goal, k) {
        const blocks = Math.ceil(k / BLOCK), small = goal.error < SMALL_ERROR;
        const kappa = goal.coherent ? Math.min(small ? 4 : 2, blocks) : 1;
        const nonzeros = goal.coherent ? (small ? 32 : 16) : 8;
        return {blocks: blocks, kappa: kappa, s: Math.min(Math.floor(nonzeros / kappa), Math.floor(k / blocks))};
    }

    function lineOf(goal, k) {
        if (!goal.coherent) return null;
        const {blocks, kappa, s} = specOf(goal, k);
        return table.filter(line => kappa >= Math.min(blocks, line[0]) && kappa * s >= line[1]).pop();
    }

    function factor([, , means, exceeded], k, n, tail) {
        const at = Math.max(0, Math.log2(k / n * Math.pow(n / COLUMNS, 2 / 3) / FIRST));
        const i = Math.floor(Math.min(at, means.length - 2));
        const between = values => values[i] + (at - i) * (values[i + 1] - values[i]);
        const mean = between(means);
        return mean + tail * (between(exceeded) - mean);
    }

    function errorOfColumns(k, n, w, tail, line) {
        const a = Math.sqrt(k - 1), b = Math.sqrt(n), sum = a + b;
        const gaussian = (sum * sum + w * sum * Math.cbrt(1 / a + 1 / b)) / k - 1;
        const error = Math.max(gaussian, Math.sqrt(4 / (Math.PI * k)));
        return line ? error * factor(line, k, n, tail) : error;
    }

    function errorAt(k, n, w, tail, line) {
        let error = errorOfColumns(k, n, w, tail, line);
        for (let fewer = 1; fewer < Math.min(n, 8); fewer++)
            error = Math.max(error, errorOfColumns(k, fewer, w, tail, line));
        return error;
    }

    /* {k, kappa, s, typical, exceeded}, or null where no k reaches the error. */
    function plan(n, error, probability, coherent) {
        const w = tracyWidomQuantile(probability), tail = Math.log(probability) / Math.log(0.05);
        const goal = {coherent: coherent, error: error};
        const exceeded = k => errorAt(k, n, w, tail, lineOf(goal, k));
        let low = Math.max(n, FEWEST_ROWS) - 1, high = MOST_ROWS;
        if (!(low < high) || exceeded(high) > error) return null;
        while (high - low > 1) {
            const middle = low + Math.floor((high - low) / 2);
            if (exceeded(middle) > error) low = middle;
            else high = middle;
        }
        const step = high > BLOCK / 2 ? BLOCK : FEWEST_ROWS, rounded = Math.ceil(high / step) * step;
        const k = rounded <= MOST_ROWS && exceeded(rounded) <= error ? rounded : high;
        const {kappa, s} = specOf(goal, k);
        return {k: k, kappa: kappa, s: s,
                typical: errorAt(k, n, TRACY_WIDOM_MEAN, 0, lineOf(goal, k)), exceeded: exceeded(k)};
    }
    return {plan: plan};
})();

/* The measured ratio to reading A at this k, between the measured k by their logarithms. */
function ratioAt(k) {
    const ks = Object.keys(measured.ratio).map(Number);
    const at = Math.min(Math.max(k, ks[0]), ks[ks.length - 1]);
    const above = Math.max(1, ks.findIndex(one => one >= at)), below = above - 1;
    const share = Math.log(at / ks[below]) / Math.log(ks[above] / ks[below]);
    return measured.ratio[ks[below]] + share * (measured.ratio[ks[above]] - measured.ratio[ks[below]]);
}

function shownTime(ms) {
    if (ms < 1) return (1000 * ms).toPrecision(3) + " µs";
    if (ms < 1000) return ms.toPrecision(3) + " ms";
    return (ms / 1000).toPrecision(3) + " s";
}

function shownBytes(bytes) {
    const units = ["B", "kB", "MB", "GB", "TB"];
    const power = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), units.length - 1);
    return (bytes / 1000 ** power).toPrecision(3) + " " + units[power];
}

function field(label, name, value, more) {
    return `<label>${label} <input name="${name}" value="${value}" ${more}></label>`;
}

function calculator(place) {
    place.innerHTML = '<form class="calculator">' +
        field("columns n", "n", 50, 'type="number" min="1" max="1000000" step="1"') +
        field("wanted error", "error", 0.5, 'type="number" min="0.01" max="0.99" step="0.01"') +
        field("exceeded with probability", "probability", 0.05, 'type="number" min="0.000001" max="0.5" step="any"') +
        field("rows d", "d", 10000000, 'type="number" min="1" step="1"') +
        field("memory bandwidth, GB/s", "bandwidth", measured.gigabytes_per_second, 'type="number" min="1" step="1"') +
        field("a few rows outweigh the others", "coherent", "yes", 'type="checkbox"') +
        '</form><table class="calculator"><tbody></tbody></table>' +
        `<p class="calculator">f32, rows contiguous, A in GPU memory. ${measured.gigabytes_per_second} GB/s is what an ` +
        `${measured.machine} reads; ratios were measured there at ${measured.d} × ${measured.n} ` +
        `(commit ${measured.commit}).</p>`;
    const form = place.querySelector("form"), table = place.querySelector("tbody");
    function update() {
        const number = name => Number(form.elements[name].value);
        const n = number("n"), d = number("d"), error = number("error"), probability = number("probability");
        const usable = n >= 1 && Number.isInteger(n) && error > 0 && error < 1 && probability >= 1e-6 &&
            probability <= 0.5 && d >= 1 && number("bandwidth") > 0;
        const found = usable ? planner.plan(n, error, probability, form.elements.coherent.checked) : null;
        const rows = [];
        if (!usable) rows.push(["", "the error and the probability must be between 0 and 1 (0.5), all else at least 1"]);
        else if (!found) rows.push(["", "no k reaches this error"]);
        else {
            const bytes = 4 * n * (d + found.k), time = bytes / (number("bandwidth") * 1e6) * ratioAt(found.k);
            rows.push(["k, κ, s", `${found.k}, ${found.kappa}, ${found.s}`],
                      ["typical error", found.typical.toPrecision(3)],
                      ["A, Y in memory", `${shownBytes(4 * n * d)}, ${shownBytes(4 * n * found.k)}`],
                      ["time on the GPU", `about ${shownTime(time)}` + (found.kappa > 1 ? ", times the price of κ" : "")]);
            if (found.k > d) rows.push(["", "k is larger than d: take A itself"]);
            if (n < 128) rows.push(["", "fewer than 128 columns: the time is up to a few times as long"]);
        }
        table.innerHTML = rows.map(([name, text]) => `<tr><th>${name}</th><td>${text}</td></tr>`).join("");
    }
    form.addEventListener("input", update);
    form.addEventListener("submit", event => event.preventDefault());
    update();
}

document.addEventListener("DOMContentLoaded", () => {
    const place = document.getElementById("sketch-calculator");
    if (place) calculator(place);
});
