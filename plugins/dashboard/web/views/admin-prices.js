import { useApp, useText } from "../app.js"
import { csvOf } from "../csv.js"
import { saveReply } from "../download.js"
import { percent } from "../format.js"
import { html } from "../html.js"
import { Moment } from "../parts/amount.js"
import { Submit } from "../parts/field.js"
import { Form } from "../parts/form.js"
import { useLoad } from "../parts/load.js"
import { Loading, ProblemNotice } from "../parts/notice.js"
import { Table } from "../parts/table.js"

/** A row for each price of a model; one for a model without any. */
export const priceRows = (models) =>
  models.flatMap((model) =>
    (model.prices.length > 0 ? model.prices : [{ kind: "free" }]).map((price, index) => ({
      ...price,
      id: `${model.id} ${price.kind}`,
      model,
      isFirst: index === 0,
    })),
  )

const csvHead = [
  "model",
  "task",
  "origin",
  "adapters",
  "kind",
  "per",
  "configured_idr",
  "idr",
  "batch_idr",
]

export const pricesCsv = (models) =>
  csvOf([
    csvHead,
    ...priceRows(models).map(({ model, kind, per, configured_idr, idr, batch_idr }) => [
      ...[model.id, model.task, model.origin, model.adapters.map(({ id }) => id).join(" ")],
      ...[kind, per, configured_idr, idr, batch_idr],
    ]),
  ])

/** An exact decimal of the API, with the separators of the language. */
const exact = (decimal, language) => {
  const [whole, part] = decimal.split(".")
  const locale = language === "id" ? "id-ID" : "en-GB"
  const dot = new Intl.NumberFormat(locale).format(1.1)[1]
  return `Rp\u00a0${new Intl.NumberFormat(locale).format(BigInt(whole))}${part ? dot + part : ""}`
}

const Model = ({ model }) => {
  const { t } = useText()
  return html`<b>${model.id}</b>${model.adapters.length > 0 && html`<p class="hint">${t("prices.adapters")}: ${model.adapters.map(({ id }) => id).join(", ")}</p>`}`
}

const Price = ({ row }) => {
  const { t, language } = useText()
  if (row.kind === "free") return t("prices.none")
  return html`${exact(row.idr, language)}${row.idr !== row.configured_idr && html`<p class="hint">${t("prices.configured", { price: exact(row.configured_idr, language) })}</p>`}`
}

const columnsOf = (t, language) => [
  {
    key: "model",
    label: t("model"),
    cell: (row) => html`<${Model} model=${row.model} />`,
  },
  {
    key: "kind",
    label: t("prices.kind"),
    cell: ({ kind }) => (kind === "free" ? "–" : t(`prices.kind.${kind}`)),
  },
  {
    key: "origin",
    label: t("prices.origin"),
    cell: ({ model }) =>
      model.origin === "config" ? t("prices.config") : html`<code>${model.origin}</code>`,
  },
  {
    key: "price",
    label: t("models.price"),
    number: true,
    cell: (row) => html`<${Price} row=${row} />`,
  },
  {
    key: "batch",
    label: t("prices.batch"),
    number: true,
    cell: ({ batch_idr }) => (batch_idr === undefined ? "–" : exact(batch_idr, language)),
  },
]

const Download = ({ models }) => {
  const { t } = useText()
  const save = () => saveReply(new Response(pricesCsv(models)), "prices.csv")
  return html`<${Form} onSubmit=${save} label="CSV" actions=${html`<${Submit} look="plain">${t("csv")}<//>`} />`
}

/** The prices in force, exact, and where each comes from. */
export const AdminPrices = () => {
  const { t, language } = useText()
  const { api } = useApp()
  const { data, problem, busy } = useLoad(() => api.get("/admin/prices"), [])
  return html`<section class="card" aria-labelledby="prices">
    <div class="head"><h2 id="prices">${t("prices")}</h2>${data && html`<${Download} models=${data.models} />`}</div>
    <${ProblemNotice} problem=${problem} />
    ${busy && !data && html`<${Loading} />`}
    ${
      data &&
      html`
      <p>${t("prices.since")} <${Moment} at=${data.since} />. ${t("prices.factor", { part: percent(data.batch_price_factor, language) })}</p>
      <p class="hint">${t("prices.hint")}</p>
      ${data.models.length === 0 ? html`<p class="quiet">${t("server.noModels")}</p>` : html`<${Table} caption=${t("prices")} columns=${columnsOf(t, language)} rows=${priceRows(data.models)} />`}`
    }
  </section>`
}
