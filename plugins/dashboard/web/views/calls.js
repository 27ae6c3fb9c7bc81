import { useState } from "preact/hooks"
import { useApp, useText } from "../app.js"
import { nowMs } from "../clock.js"
import { saveReply } from "../download.js"
import { count, duration } from "../format.js"
import { html } from "../html.js"
import { Amount, Moment } from "../parts/amount.js"
import { Button } from "../parts/button.js"
import { Field } from "../parts/field.js"
import { useList } from "../parts/list.js"
import { useLoad } from "../parts/load.js"
import { More } from "../parts/more.js"
import { ProblemNotice } from "../parts/notice.js"
import { usePoll } from "../parts/poll.js"
import { StageBar, StageList } from "../parts/stages.js"
import { Table } from "../parts/table.js"

const statuses = ["succeeded", "failed", "refused", "running"]
const looks = { succeeded: "good", failed: "bad", refused: "bad", running: "" }
const ranges = [1, 7, 30, 90]
const secondsOfADay = 86_400

const State = ({ call }) => {
  const { t } = useText()
  return html`<b class=${looks[call.status]}>${t(`call.${call.status}`)}</b>${call.http_status && html` <span class="quiet">${call.http_status}</span>`}
    ${call.error && html`<br /><code>${call.error.code}</code><br /><span class="quiet">${call.error.message}</span>`}`
}

/** How long a call took, with its stages as a bar that opens the rest. */
const Took = ({ call, opened, open }) => {
  const { t, language } = useText()
  if (call.duration_ms === null) return "–"
  const took = duration(call.duration_ms, language)
  if (!call.stages_ms) return took
  const isOpen = opened === call.id
  return html`<button type="button" class="took" aria-expanded=${isOpen} aria-label=${t("call.stages.of", { id: call.id, took })} onClick=${() => open(isOpen ? undefined : call.id)}>
    ${took}<${StageBar} call=${call} />
  </button>`
}

/** Where the time of a call went, and by which ids it is known. */
export const CallDetail = ({ call }) => {
  const { t, language } = useText()
  return html`<div class="call-detail">
    <${StageList} call=${call} />
    <dl class="facts">
      <div><dt>${t("call.firstToken")}</dt><dd>${call.first_token_ms === null ? "–" : duration(call.first_token_ms, language)}</dd></div>
      <div><dt>${t("call.took")}</dt><dd>${duration(call.duration_ms, language)}</dd></div>
      <div><dt>${t("receipt.call")}</dt><dd><code>${call.id}</code></dd></div>
      <div><dt>${t("receipt.request")}</dt><dd><code>${call.request_id}</code></dd></div>
    </dl>
  </div>`
}

export const callColumns = ({ t, language, keys, opened, open }) => [
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
    cell: (call) => html`<${Took} call=${call} opened=${opened} open=${open} />`,
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
      html`<a href=${`#receipt/${id}`} aria-label=${t("receipt.show.of", { id })}>${t("receipt.show")}</a>`,
  },
]

const Choices = ({ chosen, choose, models, keys, codes }) => {
  const { t, language } = useText()
  const pick = (name) => (event) => choose({ ...chosen, [name]: event.target.value })
  return html`<div class="fields">
    <${Field} label=${t("range")} as="select" value=${chosen.days} onChange=${pick("days")}>${ranges.map((days) => html`<option key=${days} value=${days}>${days === 1 ? t("range.day") : t("range.days", { count: count(days, language) })}</option>`)}<//>
    <${Field} label=${t("account.state")} as="select" value=${chosen.status} onChange=${pick("status")}><option value="">${t("all")}</option>${statuses.map((status) => html`<option key=${status} value=${status}>${t(`call.${status}`)}</option>`)}<//>
    <${Field} label=${t("call.code")} as="select" value=${chosen.code} onChange=${pick("code")}><option value="">${t("all")}</option>${codes.map((code) => html`<option key=${code} value=${code}>${code}</option>`)}<//>
    <${Field} label=${t("model")} as="select" value=${chosen.model} onChange=${pick("model")}><option value="">${t("all")}</option>${models.map(({ id }) => html`<option key=${id}>${id}</option>`)}<//>
    <${Field} label=${t("key")} as="select" value=${chosen.key} onChange=${pick("key")}><option value="">${t("all")}</option>${[...keys].map(([id, name]) => html`<option key=${id} value=${id}>${name}</option>`)}<//>
  </div>`
}

/** Whole minutes, so that the list is not a new one at each drawing. */
const sinceOf = (days) => Math.floor(nowMs() / 60_000) * 60 - days * secondsOfADay

/** The error codes that occurred, of live and of test keys, so that a filter offers no others. */
const useCodes = (from) => {
  const { api } = useApp()
  const ask = (mode) => api.get("/dashboard/errors", { from, mode })
  const { data } = useLoad(() => Promise.all([ask("live"), ask("test")]), [from])
  const codes = data?.flatMap((counts) => counts.data.map(({ code }) => code)) ?? []
  return [...new Set(codes)].sort()
}

/** Saves all calls that the filter shows. */
const Download = ({ query }) => {
  const { t } = useText()
  const { api } = useApp()
  const [problem, set] = useState(undefined)
  const save = () =>
    api
      .send("GET", "/dashboard/calls", { query: { ...query, format: "csv" } })
      .then((reply) => saveReply(reply, "calls.csv"))
      .then(() => set(undefined), set)
  return html`<${ProblemNotice} problem=${problem} /><div class="actions"><${Button} onClick=${save}>${t("csv")}<//></div>`
}

/** Every call of the account, refused ones, too, with filters, stages and receipts. */
export const Calls = ({ models: { models } }) => {
  const { t, language } = useText()
  const [chosen, choose] = useState({ days: 7, status: "", code: "", model: "", key: "" })
  const [since, setSince] = useState(() => sinceOf(7))
  const [opened, open] = useState(undefined)
  const keyList = useList("/dashboard/keys", { limit: 100 })
  const keys = new Map(keyList.items?.map(({ id, name }) => [id, name]))
  const codes = useCodes(since)
  const { days, ...filter } = chosen
  const query = { ...filter, from: since }
  const list = useList("/dashboard/calls", query)
  usePoll(list.items?.some(({ status }) => status === "running") ?? false, list.refresh)
  const change = (next) => {
    if (next.days !== days) setSince(sinceOf(Number(next.days)))
    choose(next)
  }
  const detail = (call) => call.id === opened && html`<${CallDetail} call=${call} />`
  return html`
    <div class="head"><h1>${t("nav.calls")}</h1><${Button} onClick=${list.refresh}>${t("refresh")}<//></div>
    <section class="card" aria-label=${t("nav.calls")}>
      <${Choices} chosen=${chosen} choose=${change} models=${models} keys=${keys} codes=${codes} />
      ${list.items?.length === 0 && html`<p class="quiet">${t("calls.none")}</p>`}
      ${list.items?.length > 0 && html`<${Table} caption=${t("nav.calls")} columns=${callColumns({ t, language, keys, opened, open })} rows=${list.items} detail=${detail} />`}
      <${More} list=${list} />
      ${list.items?.length > 0 && html`<${Download} query=${query} />`}
    </section>
  `
}
