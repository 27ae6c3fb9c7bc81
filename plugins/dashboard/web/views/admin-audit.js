import { useEffect, useState } from "preact/hooks"
import { useApp, useText } from "../app.js"
import { saveReply } from "../download.js"
import { html } from "../html.js"
import { Moment } from "../parts/amount.js"
import { Field, Submit } from "../parts/field.js"
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

/** Moments are Unix seconds, in fields that say so by their names. */
const FieldValue = ({ name, field }) =>
  name.endsWith("_at") && Number.isInteger(field) ? html`<${Moment} at=${field} />` : shown(field)

/** The changed fields of one side, one per line. */
const Fields = ({ value }) => {
  if (value === null || typeof value !== "object")
    return value === null || value === undefined ? "–" : shown(value)
  return html`<ul class="fields-of">${Object.entries(value).map(([name, field]) => html`<li key=${name}><span class="quiet">${name}</span> <${FieldValue} name=${name} field=${field} /></li>`)}</ul>`
}

/** An account by its address, with its id when it is pointed at; other things by their id. */
const Who = ({ id, email }) =>
  email ? html`<span title=${id}>${email}</span>` : html`<code>${id}</code>`

const columnsOf = (t) => [
  { key: "at", label: t("time"), cell: (entry) => html`<${Moment} at=${entry.created_at} />` },
  {
    key: "actor",
    label: t("audit.actor"),
    cell: (entry) => html`<${Who} id=${entry.actor} email=${entry.actor_email} />`,
  },
  { key: "action", label: t("audit.action"), cell: (entry) => entry.action },
  {
    key: "target",
    label: t("audit.target"),
    cell: (entry) => html`<${Who} id=${entry.target} email=${entry.target_email} />`,
  },
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

const Filters = ({ onFilter }) => {
  const { t } = useText()
  const filter = async ({ actor, action, from, to }) =>
    onFilter({ actor: actor.trim(), action: action.trim(), from, to })
  return html`<${Form} onSubmit=${filter} label=${t("audit.filter")} actions=${html`<${Submit} look="plain">${t("audit.filter")}<//>`}>
    <div class="fields">
      <${Field} label=${t("audit.actor")} hint=${t("audit.actor.hint")} name="actor" autocomplete="off" maxlength="400" />
      <${Field} label=${t("audit.action")} hint=${t("audit.action.hint")} name="action" autocomplete="off" maxlength="400" />
      <${Field} label=${t("from")} name="from" type="date" />
      <${Field} label=${t("to")} name="to" type="date" />
    </div>
  <//>`
}

/** The audit log: who did what, with the values before and after; loaded again when `changes` does. */
export const Audit = ({ changes }) => {
  const { t } = useText()
  const { api } = useApp()
  const [filter, setFilter] = useState({})
  const list = useList("/admin/audit", filter)
  const isFiltered = Object.values(filter).some(Boolean)
  const saveAll = async () =>
    saveReply(
      await api.send("GET", "/admin/audit", { query: { ...filter, format: "csv" } }),
      "audit.csv",
    )
  useEffect(() => {
    if (changes > 0) list.reload()
  }, [changes])
  return html`<section class="card" aria-labelledby="audit">
    <div class="head">
      <h2 id="audit">${t("audit")}</h2>
      <${Form} onSubmit=${saveAll} label="CSV" actions=${html`<${Submit} look="plain">${t("csv")}<//>`} />
    </div>
    <${Filters} onFilter=${setFilter} />
    ${list.items?.length === 0 && html`<p class="quiet" role="status">${t(isFiltered ? "audit.noMatch" : "audit.none")}</p>`}
    ${list.items?.length > 0 && html`<${Table} caption=${t("audit")} columns=${columnsOf(t)} rows=${list.items} />`}
    <${More} list=${list} />
  </section>`
}
