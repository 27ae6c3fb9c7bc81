import { useEffect } from "preact/hooks"
import { useApp, useText } from "../app.js"
import { saveReply } from "../download.js"
import { html } from "../html.js"
import { Moment } from "../parts/amount.js"
import { Submit } from "../parts/field.js"
import { Form } from "../parts/form.js"
import { useList } from "../parts/list.js"
import { More } from "../parts/more.js"
import { Table } from "../parts/table.js"

const shown = (value) => {
  if (typeof value === "string") return value
  if (value === null || typeof value !== "object" || Array.isArray(value))
    return JSON.stringify(value)
  return Object.entries(value)
    .map(([name, field]) => `${name} ${JSON.stringify(field)}`)
    .join(", ")
}

/** The changed fields of one side, one per line. */
const Fields = ({ value }) => {
  if (value === null || typeof value !== "object")
    return value === null || value === undefined ? "–" : shown(value)
  return html`<ul class="fields-of">${Object.entries(value).map(([name, field]) => html`<li key=${name}><span class="quiet">${name}</span> ${shown(field)}</li>`)}</ul>`
}

const columnsOf = (t) => [
  { key: "at", label: t("time"), cell: (entry) => html`<${Moment} at=${entry.created_at} />` },
  { key: "actor", label: t("audit.actor"), cell: (entry) => html`<code>${entry.actor}</code>` },
  { key: "action", label: t("audit.action"), cell: (entry) => entry.action },
  { key: "target", label: t("audit.target"), cell: (entry) => html`<code>${entry.target}</code>` },
  {
    key: "before",
    label: t("audit.before"),
    cell: (entry) => html`<${Fields} value=${entry.before} />`,
  },
  {
    key: "after",
    label: t("audit.after"),
    cell: (entry) => html`<${Fields} value=${entry.after} />`,
  },
]

/** The audit log: who did what, with the values before and after; loaded again when `changes` does. */
export const Audit = ({ changes }) => {
  const { t } = useText()
  const { api } = useApp()
  const list = useList("/admin/audit")
  const saveAll = async () =>
    saveReply(await api.send("GET", "/admin/audit", { query: { format: "csv" } }), "audit.csv")
  useEffect(() => {
    if (changes > 0) list.reload()
  }, [changes])
  return html`<section class="card" aria-labelledby="audit">
    <div class="head">
      <h2 id="audit">${t("audit")}</h2>
      <${Form} onSubmit=${saveAll} label="CSV" actions=${html`<${Submit} look="plain">${t("csv")}<//>`} />
    </div>
    ${list.items?.length === 0 && html`<p class="quiet">${t("audit.none")}</p>`}
    ${list.items?.length > 0 && html`<${Table} caption=${t("audit")} columns=${columnsOf(t)} rows=${list.items} />`}
    <${More} list=${list} />
  </section>`
}
