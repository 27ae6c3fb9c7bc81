import { useText } from "../app.js"
import { fixed, percent } from "../format.js"
import { html } from "../html.js"
import { apart, fitted, nearest, placed, stepOf } from "../vectors.js"

/** How alike each is to each; a row names its text, a column has the row's number. */
export const SimilarityTable = ({ labels, matrix }) => {
  const { t, language } = useText()
  return html`<div class="scroll matrix" role="group" aria-label=${t("play.embed.similar")} tabindex="0">
    <table>
      <caption class="unseen">${t("play.embed.similar")}</caption>
      <thead><tr><td></td>${labels.map((label, at) => html`<th key=${at} scope="col" title=${label}>${at + 1}</th>`)}</tr></thead>
      <tbody>${matrix.map(
        (row, at) => html`<tr key=${at}>
          <th scope="row" title=${labels[at]}>${at + 1} ${labels[at]}</th>
          ${row.map((value, to) => html`<td key=${to} class=${`step-${stepOf(value)}`}>${fixed(value, language)}</td>`)}
        </tr>`,
      )}</tbody>
    </table>
  </div>`
}

const frame = { width: 320, height: 220, margin: 16, radius: 9, letter: { width: 6.2, height: 12 } }
const mostLetters = 20

const short = (text) =>
  text.length > mostLetters ? `${text.slice(0, mostLetters - 1).trimEnd()}…` : text

/** What is alike lies together. A text without room is its number alone. */
export const PlaneMap = ({ labels, plane }) => {
  const { t, language } = useText()
  const points = apart(fitted(plane.points, frame), frame)
  const texts = labels.map(short)
  const places = placed(points, texts, frame)
  return html`<figure class="plane">
    <svg viewBox=${`0 0 ${frame.width} ${frame.height}`} role="img" aria-label=${t("play.embed.map.label")}>
      ${points.map(
        ([x, y], at) => html`<g key=${at}>
          <title>${labels[at]}</title>
          <circle cx=${x} cy=${y} r=${frame.radius} />
          <text class="mark" x=${x} y=${y} text-anchor="middle" dominant-baseline="central">${at + 1}</text>
          ${places[at] && html`<text x=${places[at].x} y=${y} text-anchor=${places[at].anchor} dominant-baseline="central">${texts[at]}</text>`}
        </g>`,
      )}
    </svg>
    <figcaption class="hint">${t("play.embed.kept", { part: percent(plane.kept, language) })}</figcaption>
  </figure>`
}

/** The map in words. */
export const Nearest = ({ labels, matrix }) => {
  const { t, language } = useText()
  return html`<details>
    <summary>${t("play.embed.nearest")}</summary>
    <ol class="nearest">${nearest(matrix).map(
      ({ index, value }, at) =>
        html`<li key=${at}>${labels[at]} → ${labels[index]} <span class="quiet">${fixed(value, language)}</span></li>`,
    )}</ol>
  </details>`
}
