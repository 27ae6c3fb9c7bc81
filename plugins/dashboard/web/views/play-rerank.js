import { useText } from "../app.js"
import { count, fixed } from "../format.js"
import { html } from "../html.js"
import { Field, Submit } from "../parts/field.js"
import { Form } from "../parts/form.js"
import { Table } from "../parts/table.js"
import { rerankBody, rerankCode } from "../play-request.js"
import { apiBase, Code, ModelField, Paid, useAnswer, useCall } from "./play-parts.js"

const Score = ({ value }) => {
  const { t, language } = useText()
  const text = fixed(value, language, 4)
  return html`<span class="score">${text}<progress max="1" value=${value} aria-label=${t("hit.score", { score: text })}></progress></span>`
}

const Results = ({ documents, results }) => {
  const { t } = useText()
  const columns = [
    { key: "place", label: t("play.rerank.place"), number: true, cell: ({ place }) => place },
    {
      key: "document",
      label: t("play.rerank.document"),
      wide: true,
      cell: ({ index }) => documents[index],
    },
    {
      key: "index",
      label: t("play.rerank.before"),
      number: true,
      cell: ({ index }) => index + 1,
    },
    {
      key: "score",
      label: t("play.rerank.score"),
      cell: (result) => html`<${Score} value=${result.relevance_score} />`,
    },
  ]
  const rows = results.map((result, at) => ({ ...result, place: at + 1 }))
  return html`<${Table} caption=${t("play.rerank.results")} columns=${columns} rows=${rows} rowKey=${({ index }) => index} />`
}

/** Documents by how well they fit a query. */
export const PlayRerank = ({ models }) => {
  const { t, language } = useText()
  const call = useCall()
  const { answer, ask } = useAnswer()
  const send = async (fields) => {
    const body = rerankBody(fields)
    await ask(body, call("/v1/rerank", { body }))
  }
  const { sent, reply } = answer ?? {}
  const units = reply?.meta.billed_units.search_units
  return html`<section class="card" aria-label=${t("play.tab.rerank")}>
    <${Form} onSubmit=${send} label=${t("play.tab.rerank")} actions=${html`<${Submit}>${t("play.rerank.send")}<//>`}>
      <div class="fields">
        <${ModelField} models=${models} />
        <${Field} label=${t("play.rerank.topN")} name="top_n" type="number" step="any" inputmode="numeric" placeholder=${t("all")} />
      </div>
      <${Field} label=${t("query")} name="query" required maxlength="100000" defaultValue=${t("play.rerank.example.query")} />
      <${Field} label=${t("play.rerank.documents")} hint=${t("play.lines")} name="documents" as="textarea" rows="6" required maxlength="700000" defaultValue=${t("play.rerank.example.documents")} />
    <//>
    <${Paid} used=${reply && t("play.rerank.units", { units: count(units, language) })} cost=${reply?.meta.cost_idr} callId=${reply?.callId} />
    ${
      reply &&
      html`<h2>${t("play.rerank.results")}</h2>
      <p class="hint">${t("play.rerank.hint")}</p>
      <${Results} documents=${sent.documents} results=${reply.results} />
      <${Code} write=${() => rerankCode(apiBase(), sent)} />`
    }
  </section>`
}
