import { useApp, useText } from "../app.js"
import { saveReply } from "../download.js"
import { count, moment } from "../format.js"
import { html } from "../html.js"
import { Button } from "../parts/button.js"
import { Dialog } from "../parts/dialog.js"
import { useLoad } from "../parts/load.js"
import { Loading, Notice, ProblemNotice } from "../parts/notice.js"
import { readJws, verifyReceipt } from "../verify-receipt.js"

const kinds = { right: "good", wrong: "bad", unknown: "bad", unable: "warn" }

/** Amounts are the receipt's own exact texts: what is signed is what is shown. */
const factsOf = (t, language, receipt) =>
  [
    ["receipt.call", receipt.call_id],
    ["receipt.request", receipt.request_id],
    ["receipt.endpoint", receipt.endpoint],
    ["model", receipt.model ?? "–"],
    ["account.state", `${receipt.status} (${receipt.http_status ?? "–"})`],
    ["receipt.settled", moment(receipt.settled_at, language)],
    ["receipt.held", `Rp ${receipt.hold_idr}`],
    ["receipt.cost", `Rp ${receipt.cost_idr}`],
    ...Object.entries(receipt.usage).flatMap(([model, usage]) =>
      Object.entries(usage)
        .filter(([, amount]) => amount > 0)
        .map(([meter, amount]) => [`${model}: ${meter}`, count(amount, language)]),
    ),
  ].map(([name, value]) => [name.includes(": ") ? name : t(name), value])

const Shown = ({ jws, verdict }) => {
  const { t, language } = useText()
  const { header, payload } = readJws(jws)
  return html`<${Notice} kind=${kinds[verdict]}>${t(`receipt.${verdict}`, { kid: header.kid })}<//>
    <dl class="facts tall">${factsOf(t, language, payload).map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
    <details><summary>${t("receipt.whole")}</summary><pre class="code" tabindex="0" aria-label=${t("receipt.whole")}>${JSON.stringify(payload, null, 2)}</pre></details>`
}

/** A receipt in words, verified in this browser with the server's published keys. */
export const Receipt = ({ id, onClose }) => {
  const { t } = useText()
  const { api } = useApp()
  const path = `/dashboard/receipts/${encodeURIComponent(id)}`
  const load = async () => {
    const [{ jws }, keys] = await Promise.all([api.get(path), api.get("/.well-known/jwks.json")])
    return { jws, verdict: await verifyReceipt(jws, keys) }
  }
  const { data, problem } = useLoad(load, [id])
  const save = async () => saveReply(await api.send("GET", path), `receipt-${id}.json`)
  return html`<${Dialog} title=${t("receipt")} onClose=${onClose}>
    <${ProblemNotice} problem=${problem} />
    ${data ? html`<${Shown} ...${data} />` : !problem && html`<${Loading} />`}
    <div class="actions"><${Button} onClick=${save}>${t("receipt.save")}<//><${Button} onClick=${onClose}>${t("close")}<//></div>
  <//>`
}
