import { useState } from "preact/hooks"
import { useText } from "../app.js"
import { nowMs } from "../clock.js"
import { count } from "../format.js"
import { html } from "../html.js"
import { Amount, Moment } from "../parts/amount.js"
import { Button } from "../parts/button.js"
import { Field } from "../parts/field.js"
import { useList } from "../parts/list.js"
import { More } from "../parts/more.js"
import { usePoll } from "../parts/poll.js"
import { Table } from "../parts/table.js"
import { Receipt } from "./receipt.js"

const statuses = ["succeeded", "failed", "refused", "running"]
const looks = { succeeded: "good", failed: "bad", refused: "bad", running: "" }
const ranges = [1, 7, 30, 90]
const secondsOfADay = 86_400

const State = ({ call }) => {
  const { t } = useText()
  return html`<b class=${looks[call.status]}>${t(`call.${call.status}`)}</b>${call.http_status && html` <span class="quiet">${call.http_status}</span>`}
    ${call.error && html`<br /><code>${call.error.code}</code><br /><span class="quiet">${call.error.message}</span>`}`
}

const took = (ms, language) =>
  ms === null
    ? "–"
    : ms < 1000
      ? `${count(Math.round(ms), language)} ms`
      : `${count(Math.round(ms / 100) / 10, language)} s`

export const callColumns = (t, language, keys, show) => [
  { key: "at", label: t("time"), cell: (call) => html`<${Moment} at=${call.created_at} />` },
  {
    key: "what",
    label: t("model"),
    wide: true,
    cell: (call) =>
      html`${call.model ?? "–"}<br /><span class="quiet">${call.endpoint} · ${keys.get(call.key_id) ?? t("call.otherKey")}</span>`,
  },
  { key: "state", label: t("account.state"), cell: (call) => html`<${State} call=${call} />` },
  {
    key: "tokens",
    label: t("call.tokens"),
    number: true,
    cell: (call) =>
      `${count(call.input_tokens, language)} / ${count(call.output_tokens, language)}`,
  },
  {
    key: "took",
    label: t("call.took"),
    number: true,
    cell: (call) => took(call.duration_ms, language),
  },
  {
    key: "cost",
    label: t("call.cost"),
    number: true,
    cell: (call) => html`<${Amount} value=${call.cost_idr} />`,
  },
  {
    key: "receipt",
    label: t("receipt"),
    cell: ({ id, has_receipt }) =>
      has_receipt &&
      html`<${Button} look="link" aria-label=${t("receipt.show.of", { id })} onClick=${() => show(id)}>${t("receipt.show")}<//>`,
  },
]

const Choices = ({ chosen, choose, models, keys }) => {
  const { t, language } = useText()
  const pick = (name) => (event) => choose({ ...chosen, [name]: event.target.value })
  return html`<div class="fields">
    <${Field} label=${t("range")} as="select" value=${chosen.days} onChange=${pick("days")}>${ranges.map((days) => html`<option key=${days} value=${days}>${t("range.days", { count: count(days, language) })}</option>`)}<//>
    <${Field} label=${t("account.state")} as="select" value=${chosen.status} onChange=${pick("status")}><option value="">${t("all")}</option>${statuses.map((status) => html`<option key=${status} value=${status}>${t(`call.${status}`)}</option>`)}<//>
    <${Field} label=${t("model")} as="select" value=${chosen.model} onChange=${pick("model")}><option value="">${t("all")}</option>${models.map(({ id }) => html`<option key=${id}>${id}</option>`)}<//>
    <${Field} label=${t("key")} as="select" value=${chosen.key} onChange=${pick("key")}><option value="">${t("all")}</option>${[...keys].map(([id, name]) => html`<option key=${id} value=${id}>${name}</option>`)}<//>
  </div>`
}

/** Whole minutes, so that the list is not a new one at each drawing. */
const sinceOf = (days) => Math.floor(nowMs() / 60_000) * 60 - days * secondsOfADay

/** Every call of the account, refused ones, too, with filters and receipts. */
export const Calls = ({ models: { models } }) => {
  const { t, language } = useText()
  const [chosen, choose] = useState({ days: 7, status: "", model: "", key: "" })
  const [since, setSince] = useState(() => sinceOf(7))
  const [shown, show] = useState(undefined)
  const keyList = useList("/dashboard/keys", { limit: 100 })
  const keys = new Map(keyList.items?.map(({ id, name }) => [id, name]))
  const { days, ...filter } = chosen
  const list = useList("/dashboard/calls", { ...filter, from: since })
  usePoll(list.items?.some(({ status }) => status === "running") ?? false, list.refresh)
  const change = (next) => {
    if (next.days !== days) setSince(sinceOf(Number(next.days)))
    choose(next)
  }
  return html`
    <div class="head"><h1>${t("nav.calls")}</h1><${Button} onClick=${list.refresh}>${t("refresh")}<//></div>
    <section class="card" aria-label=${t("nav.calls")}>
      <${Choices} chosen=${chosen} choose=${change} models=${models} keys=${keys} />
      ${list.items?.length === 0 && html`<p class="quiet">${t("calls.none")}</p>`}
      ${list.items?.length > 0 && html`<${Table} caption=${t("nav.calls")} columns=${callColumns(t, language, keys, show)} rows=${list.items} />`}
      <${More} list=${list} />
    </section>
    ${shown && html`<${Receipt} id=${shown} onClose=${() => show(undefined)} />`}
  `
}
