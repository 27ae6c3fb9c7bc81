import { useEffect, useRef, useState } from "preact/hooks"
import { useApp, useText } from "../app.js"
import { saveReply } from "../download.js"
import { html } from "../html.js"
import { Amount, Moment } from "../parts/amount.js"
import { Button } from "../parts/button.js"
import { useList } from "../parts/list.js"
import { More } from "../parts/more.js"
import { ProblemNotice } from "../parts/notice.js"
import { Table } from "../parts/table.js"

/** Downloads a signed receipt, which can be verified without this server. */
const useReceipt = () => {
  const { api } = useApp()
  const [{ busy, problem }, set] = useState({})
  const save = async (callId) => {
    set({ busy: callId })
    await api.send("GET", `/dashboard/receipts/${encodeURIComponent(callId)}`).then(
      async (reply) => {
        await saveReply(reply, `receipt-${callId}.json`)
        set({})
      },
      (problem) => set({ problem }),
    )
  }
  return { busy, problem, save }
}

const Entry = ({ entry }) =>
  html`${entry.description}${entry.call_id && html`<br /><code class="quiet">${entry.call_id}</code>`}`

const columnsOf = (t, receipt) => [
  { key: "at", label: t("time"), cell: (entry) => html`<${Moment} at=${entry.created_at} />` },
  { key: "type", label: t("ledger.type"), cell: (entry) => t(`ledger.${entry.type}`) },
  {
    key: "description",
    label: t("ledger.description"),
    wide: true,
    cell: (entry) => html`<${Entry} entry=${entry} />`,
  },
  {
    key: "amount",
    label: t("ledger.amount"),
    number: true,
    cell: (entry) => html`<${Amount} value=${entry.amount_idr} signed />`,
  },
  {
    key: "balance",
    label: t("balance"),
    number: true,
    cell: (entry) => html`<${Amount} value=${entry.balance_idr} />`,
  },
  {
    key: "receipt",
    label: t("receipt"),
    cell: ({ call_id, type }) =>
      type === "charge" &&
      call_id &&
      html`<a href=${`#receipt/${call_id}`} aria-label=${t("receipt.show.of", { id: call_id })}>${t("receipt.show")}</a> <${Button} look="link" busy=${receipt.busy === call_id} aria-label=${t("receipt.of", { id: call_id })} onClick=${() => receipt.save(call_id)}>${t("receipt.save")}<//>`,
  },
]

/** The ledger of the own account, or by `query` of another one, without its receipts; loaded again when `changes` does. */
export const Entries = ({ query = {}, changes }) => {
  const { t } = useText()
  const list = useList("/dashboard/ledger", query)
  const receipt = useReceipt()
  const seen = useRef(changes)
  useEffect(() => {
    if (seen.current !== changes) list.reload()
    seen.current = changes
  }, [changes])
  const columns = columnsOf(t, receipt).filter(({ key }) => key !== "receipt" || !query.account)
  return html`
    <${ProblemNotice} problem=${receipt.problem} />
    ${list.items?.length === 0 && html`<p class="quiet">${t("ledger.none")}</p>`}
    ${list.items?.length > 0 && html`<${Table} caption=${t("nav.ledger")} columns=${columns} rows=${list.items} />`}
    <${More} list=${list} />
  `
}
