import { html } from "../html.js"

/**
 * `columns`: `{ key, label, number?, wide?, cell(row) }`. What is wider than the window scrolls by itself, by keyboard too.
 * `caption` is for screen readers; the heading above says it to the others.
 */
export const Table = ({ caption, columns, rows, foot, rowKey = (row, index) => row.id ?? index }) => {
  const looks = ({ number, wide }) => [number && "number", wide && "wide"].filter(Boolean).join(" ") || undefined
  return html`<div class="scroll" role="region" aria-label=${caption} tabindex="0">
    <table>
      <caption class="unseen">${caption}</caption>
      <thead><tr>${columns.map((column) => html`<th key=${column.key} scope="col" class=${looks(column)}>${column.label}</th>`)}</tr></thead>
      <tbody>
        ${rows.map((row, index) => html`<tr key=${rowKey(row, index)}>${columns.map((column) => html`<td key=${column.key} class=${looks(column)}>${column.cell(row)}</td>`)}</tr>`)}
      </tbody>
      ${foot && html`<tfoot><tr>${columns.map((column) => html`<td key=${column.key} class=${looks(column)}>${foot[column.key]}</td>`)}</tr></tfoot>`}
    </table>
  </div>`
}
