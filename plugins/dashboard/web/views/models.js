import { useText } from "../app.js"
import { count, exactMoney } from "../format.js"
import { html } from "../html.js"
import { Table } from "../parts/table.js"

const stateText = (t, { state, done_bytes, total_bytes, detail, reason }) => {
  const word = t(`model.${state}`)
  if (state === "pulling" && total_bytes)
    return `${word} ${Math.floor((100 * done_bytes) / total_bytes)} %`
  return [word, detail ?? reason].filter(Boolean).join(": ")
}

const priced = ["input_idr", "output_idr", "image_idr", "audio_second_idr", "search_unit_idr"]
const priceText = (t, language, pricing = {}) =>
  priced
    .filter((what) => pricing[what] > 0)
    .map((what) => t(`price.${what}`, { price: exactMoney(pricing[what], language) }))
    .join(", ") || t("price.free")

const columnsOf = (t, language) => [
  { key: "id", label: t("model"), cell: ({ id }) => html`<b>${id}</b>` },
  {
    key: "state",
    label: t("models.state"),
    cell: ({ state }) => html`<span class=${`state ${state.state}`}>${stateText(t, state)}</span>`,
  },
  {
    key: "window",
    label: t("models.window"),
    number: true,
    cell: ({ context_window }) => (context_window > 0 ? count(context_window, language) : "–"),
  },
  {
    key: "price",
    label: t("models.price"),
    wide: true,
    cell: ({ pricing }) => priceText(t, language, pricing),
  },
]

/** The state and prices of each model. */
export const Models = ({ models: { status, models } }) => {
  const { t, language } = useText()
  return html`<section class="card" aria-labelledby="models-title">
    <div class="head">
      <h2 id="models-title">${t("models")}</h2>
      <span class=${`badge ${status ?? ""}`} role="status">${status ? t(`server.${status}`) : t("loading")}</span>
    </div>
    ${models.length > 0 && html`<${Table} caption=${t("models")} columns=${columnsOf(t, language)} rows=${models} />`}
  </section>`
}
