import { useApp, useText } from "../app.js"
import { saveReply } from "../download.js"
import { count, moment } from "../format.js"
import { html } from "../html.js"
import { Button } from "../parts/button.js"
import { useLoad } from "../parts/load.js"
import { Loading, Notice, ProblemNotice } from "../parts/notice.js"
import { usePart } from "../route.js"
import { readJws, verifyReceipt } from "../verify-receipt.js"

const pathOf = (id) => `/dashboard/receipts/${encodeURIComponent(id)}`

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

const Shown = ({ id, jws, verdict }) => {
  const { t, language } = useText()
  const { api } = useApp()
  const { header, payload } = readJws(jws)
  const save = async () => saveReply(await api.send("GET", pathOf(id)), `receipt-${id}.json`)
  return html`<section class="card" aria-label=${t("nav.receipt")}>
      <${Notice} kind=${kinds[verdict]}>${t(`receipt.${verdict}`, { kid: header.kid })}<//>
      <dl class="facts tall">${factsOf(t, language, payload).map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
      <details><summary>${t("receipt.whole")}</summary><pre class="code" tabindex="0" aria-label=${t("receipt.whole")}>${JSON.stringify(payload, null, 2)}</pre></details>
      <div class="actions"><${Button} look="main" onClick=${save}>${t("receipt.saveJson")}<//></div>
    </section>
    <section class="card"><h2>${t("receipt.proves")}</h2>
      <p>${t("receipt.proves.signed")}</p>
      <p>${t(payload.evidence ? "receipt.proves.evidence" : "receipt.proves.plain")}</p>
      <p>${t("receipt.proves.check")} <a href="/.well-known/jwks.json">jwks.json</a></p>
    </section>`
}

/** Why there is no receipt to show. */
const Missing = ({ id, problem }) => {
  const { t } = useText()
  const isUnknown = problem.status === 404 || problem.status === 409
  return html`<section class="card">
    ${isUnknown ? html`<${Notice} kind="bad">${t(problem.status === 404 ? "receipt.none" : "receipt.early", { id })}<//>` : html`<${ProblemNotice} problem=${problem} />`}
    <p><a href="#calls">${t("receipt.back")}</a></p>
  </section>`
}

/** One call's receipt at its own address, verified in this browser with the server's published keys. */
const OneReceipt = ({ id }) => {
  const { api } = useApp()
  const load = async () => {
    const [{ jws }, keys] = await Promise.all([
      api.get(pathOf(id)),
      api.get("/.well-known/jwks.json"),
    ])
    return { jws, verdict: await verifyReceipt(jws, keys) }
  }
  const { data, problem } = useLoad(load, [])
  if (problem) return html`<${Missing} id=${id} problem=${problem} />`
  return data ? html`<${Shown} id=${id} ...${data} />` : html`<${Loading} />`
}

export const Receipt = () => {
  const { t } = useText()
  const id = usePart()
  return html`<div class="head"><h1>${t("nav.receipt")}</h1></div>
    <${OneReceipt} key=${id} id=${id === "" ? "–" : id} />`
}
