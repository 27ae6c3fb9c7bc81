import { useState } from "preact/hooks"
import { useApp, useText } from "../app.js"
import { html } from "../html.js"
import { Drop } from "../parts/drop.js"
import { Check, Field, Submit } from "../parts/field.js"
import { Form } from "../parts/form.js"
import { FileList, useFiles } from "./file-list.js"
import { Hits } from "./hits.js"

/** As many as the API gives: chunks before and behind a hit, for the text around it. */
const neighbours = 3

const Query = ({ files }) => {
  const { t } = useText()
  const { v1, account } = useApp()
  const [results, show] = useState(undefined)
  const names = new Map(files.map(({ id, filename }) => [id, filename]))
  const ask = async ({ query, top_k, hybrid, rerank }) => {
    const more = { ...(hybrid && { hybrid: true }), ...(rerank && { rerank: true }) }
    const asked = { query, top_k: Number(top_k), neighbours, ...more }
    show((await v1.post("/v1/retrieval", asked)).results)
    account.get()?.refresh()
  }
  return html`<section class="card" aria-label=${t("query.try")}>
    <h2>${t("query.try")}</h2>
    <${Form} onSubmit=${ask} label=${t("query.try")} actions=${html`<${Submit}>${t("query.ask")}<//>`}>
      <${Field} label=${t("query")} name="query" required maxlength="10000" autocomplete="off" />
      <div class="fields">
        <${Field} label=${t("query.hits")} name="top_k" type="number" min="1" max="50" defaultValue="5" required />
        <${Check} label=${t("query.hybrid")} name="hybrid" hint=${t("query.hybrid.hint")} />
        <${Check} label=${t("query.rerank")} name="rerank" hint=${t("query.rerank.hint")} />
      </div>
    <//>
    <div role="status">${results?.length === 0 && html`<p class="quiet">${t("query.nothing")}</p>`}</div>
    ${results?.length > 0 && html`<${Hits} hits=${results} names=${names} />`}
  </section>`
}

/** Files for retrieval: how far each is read, and a query to try. */
export const Knowledge = () => {
  const { t } = useText()
  const list = useFiles({ purpose: "knowledge" })
  return html`
    <h1>${t("nav.knowledge")}</h1>
    <p class="quiet">${t("knowledge.what")}</p>
    <section class="card" aria-label=${t("upload")}>
      <${Drop} label=${t("upload")} hint=${t("upload.hint.knowledge")} accept=".pdf,.txt,.md,.html,.docx,.csv" purpose="knowledge" onUploaded=${list.reload} />
      <${FileList} list=${list} none=${t("knowledge.none")} />
    </section>
    <${Query} files=${list.items ?? []} />
  `
}
