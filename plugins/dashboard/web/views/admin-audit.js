import { useEffect } from "preact/hooks"
import { useText } from "../app.js"
import { html } from "../html.js"
import { Moment } from "../parts/amount.js"
import { useList } from "../parts/list.js"
import { More } from "../parts/more.js"
import { Table } from "../parts/table.js"

const State = ({ value }) => (value === null || value === undefined ? "–" : html`<pre>${JSON.stringify(value, null, 1)}</pre>`)

const columnsOf = (t) => [
  { key: "at", label: t("time"), cell: (entry) => html`<${Moment} at=${entry.created_at} />` },
  { key: "actor", label: t("audit.actor"), cell: (entry) => html`<code>${entry.actor}</code>` },
  { key: "action", label: t("audit.action"), cell: (entry) => entry.action },
  { key: "target", label: t("audit.target"), cell: (entry) => html`<code>${entry.target}</code>` },
  { key: "before", label: t("audit.before"), cell: (entry) => html`<${State} value=${entry.before} />` },
  { key: "after", label: t("audit.after"), cell: (entry) => html`<${State} value=${entry.after} />` },
]

/** Who did what, what was before and after; asked anew with each of `changes`. */
export const Audit = ({ changes }) => {
  const { t } = useText()
  const list = useList("/admin/audit")
  useEffect(() => {
    if (changes > 0) list.reload()
  }, [changes])
  return html`<section class="card" aria-labelledby="audit">
    <h2 id="audit">${t("audit")}</h2>
    ${list.items?.length === 0 && html`<p class="quiet">${t("audit.none")}</p>`}
    ${list.items?.length > 0 && html`<${Table} caption=${t("audit")} columns=${columnsOf(t)} rows=${list.items} />`}
    <${More} list=${list} />
  </section>`
}
