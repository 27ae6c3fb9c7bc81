import { useMemo, useState } from "preact/hooks"
import { useApp, useText } from "../app.js"
import { dayMs, dayText } from "../format.js"
import { html } from "../html.js"
import { Amount, Moment } from "../parts/amount.js"
import { useList } from "../parts/list.js"
import { useLoad } from "../parts/load.js"
import { More } from "../parts/more.js"
import { Loading, ProblemNotice } from "../parts/notice.js"
import { Table } from "../parts/table.js"
import { CallDetail, callColumns } from "./calls.js"
import { UsageTable } from "./usage-table.js"

const keyColumns = (t) => [
  { key: "name", label: t("key.name"), cell: (key) => key.name },
  {
    key: "prefix",
    label: t("accountKeys.prefix"),
    cell: (key) => html`<code>${key.prefix}…</code>`,
  },
  {
    key: "state",
    label: t("account.state"),
    cell: (key) => html`
      <span class=${`badge ${key.test ? "test" : "live"}`}>${t(key.test ? "key.kind.test" : "key.kind.live")}</span>
      ${key.revoked_at !== null && html` <span class="badge failed">${t("key.revoked")}</span>`}
    `,
  },
  {
    key: "spent",
    label: t("accountKeys.spent"),
    number: true,
    cell: (key) => html`<${Amount} value=${key.spent_this_month_idr} />`,
  },
  {
    key: "used",
    label: t("accountKeys.used"),
    cell: (key) => html`<${Moment} at=${key.last_used_at} never=${t("never")} />`,
  },
]

const Keys = ({ list }) => {
  const { t } = useText()
  return html`
    ${list.items?.length === 0 && html`<p class="quiet">${t("accountKeys.none")}</p>`}
    ${list.items?.length > 0 && html`<${Table} caption=${t("nav.keys")} columns=${keyColumns(t)} rows=${list.items} />`}
    <${More} list=${list} />
  `
}

const groups = ["day", "key", "model"]

const Usage = ({ account, keyNames }) => {
  const { t } = useText()
  const { api, nowMs } = useApp()
  const { data, problem, busy } = useLoad(
    () =>
      api.get("/dashboard/usage", {
        account: account.id,
        from: dayText(nowMs() - 29 * dayMs),
        to: dayText(nowMs()),
        group_by: groups.join(","),
      }),
    [account.id, account.balance_idr],
  )
  return html`
    <${ProblemNotice} problem=${problem} />
    ${busy && !data && html`<${Loading} />`}
    ${data?.data.length === 0 && html`<p class="quiet" role="status">${t("usage.none")}</p>`}
    ${data?.data.length > 0 && html`<${UsageTable} rows=${data.data} groups=${groups} keyNames=${keyNames} />`}
  `
}

/** Newest first; receipts are their owner's. */
const Calls = ({ account, keyNames }) => {
  const { t, language } = useText()
  const list = useList("/dashboard/calls", { account: account.id })
  const [opened, open] = useState(undefined)
  const shown = { t, language, keys: keyNames, opened, open }
  const columns = callColumns(shown).filter(({ key }) => key !== "receipt")
  const detail = (call) => call.id === opened && html`<${CallDetail} call=${call} />`
  return html`
    ${list.items?.length === 0 && html`<p class="quiet" role="status">${t("accountCalls.none")}</p>`}
    ${list.items?.length > 0 && html`<${Table} caption=${t("nav.calls")} columns=${columns} rows=${list.items} detail=${detail} />`}
    <${More} list=${list} />
  `
}

const Fold = ({ title, children }) => {
  const [isOpen, setOpen] = useState(false)
  return html`<details onToggle=${(event) => setOpen(event.target.open)}>
    <summary>${title}</summary>
    ${isOpen && children}
  </details>`
}

/** An account's keys, its usage of the last 30 days by day, key and model, and its calls. */
export const AccountUse = ({ account }) => {
  const { t } = useText()
  const list = useList(`/admin/accounts/${account.id}/keys`)
  const keyNames = useMemo(
    () => new Map(list.items?.map(({ id, name }) => [id, name])),
    [list.items],
  )
  return html`
    <${Fold} title=${t("nav.keys")}><${Keys} list=${list} /><//>
    <${Fold} title=${t("accountUsage")}><${Usage} account=${account} keyNames=${keyNames} /><//>
    <${Fold} title=${t("nav.calls")}><${Calls} account=${account} keyNames=${keyNames} /><//>
  `
}
