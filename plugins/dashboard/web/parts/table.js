import { html } from "../html.js"

const looks = ({ number, wide }) =>
  [number && "number", wide && "wide"].filter(Boolean).join(" ") || undefined

const Head = ({ columns }) => html`<thead role="rowgroup"><tr role="row">
  ${columns.map((column) => html`<th key=${column.key} scope="col" role="columnheader" class=${looks(column)}>${column.label}</th>`)}
</tr></thead>`

/** On a phone a row becomes a block and each cell shows its label; the roles keep it a table for screen readers. */
const Row = ({ columns, cell }) => html`<tr role="row">
  ${columns.map((column) => html`<td key=${column.key} role="cell" class=${looks(column)} data-label=${column.label}><div>${cell(column)}</div></td>`)}
</tr>`

/** What belongs to the row above it, over the whole width. */
const Detail = ({ columns, children }) =>
  html`<tr role="row" class="detail"><td role="cell" colspan=${columns.length}><div>${children}</div></td></tr>`

/**
 * `columns`: `{ key, label, number?, wide?, cell(row) }`; `foot`: the last row, by the columns' keys; `detail(row)`: what is shown below a row, if anything. A table wider than the window scrolls on its own, by keyboard, too.
 * `caption` is for screen readers; others have the heading above.
 */
export const Table = ({
  caption,
  columns,
  rows,
  foot,
  detail,
  rowKey = (row, index) => row.id ?? index,
}) => html`
  <div class="scroll" role="group" aria-label=${caption} tabindex="0">
    <table role="table">
      <caption class="unseen">${caption}</caption>
      <${Head} columns=${columns} />
      <tbody role="rowgroup">${rows.map((row, index) => {
        const key = rowKey(row, index)
        const below = detail?.(row)
        return [
          html`<${Row} key=${key} columns=${columns} cell=${(column) => column.cell(row)} />`,
          below && html`<${Detail} key=${`${key} detail`} columns=${columns}>${below}<//>`,
        ]
      })}</tbody>
      ${foot && html`<tfoot role="rowgroup"><${Row} columns=${columns} cell=${({ key }) => foot[key]} /></tfoot>`}
    </table>
  </div>
`
