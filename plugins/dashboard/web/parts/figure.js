import { html } from "../html.js"

/** A value with its name, large; `bar`: what stands below it, such as a progress bar. */
export const Figure = ({ label, value, hint, bar }) =>
  html`<div class="card figure"><p class="quiet">${label}</p><p class="big">${value}</p>${bar}${hint && html`<p class="hint">${hint}</p>`}</div>`

/** A part of a whole, 0 to 1, as a bar that warns near its end. */
export const Bar = ({ part, label }) =>
  html`<progress class=${part > 0.9 ? "full" : part > 0.75 ? "high" : undefined} max="1" value=${Math.min(1, part)} aria-label=${label}></progress>`
