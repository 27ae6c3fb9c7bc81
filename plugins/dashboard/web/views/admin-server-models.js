import { useText } from "../app.js"
import { bytes, count, percent } from "../format.js"
import { html } from "../html.js"
import { Table } from "../parts/table.js"

const State = ({ model }) => {
  const { t, language } = useText()
  const { state, reason, done_bytes, total_bytes } = model
  const pulled =
    state === "pulling" &&
    [bytes(done_bytes, language), total_bytes && bytes(total_bytes, language)]
      .filter(Boolean)
      .join(" / ")
  return html`<span class=${`badge ${state}`}>${t(`model.${state}`)}</span>
    ${(reason || pulled) && html`<p class="hint">${reason || pulled}</p>`}`
}

/** What runs the model, and in which precision; the address of an upstream may be long. */
const Engine = ({ model }) => {
  const { t } = useText()
  const { backend, served_by, precision, adapters, engine } = model
  const more = [
    precision && t("server.precision", { precision }),
    adapters.length > 0 && adapters.join(", "),
    engine?.restarts > 0 && t("server.restarts", { count: engine.restarts }),
  ].filter(Boolean)
  return html`${served_by ?? backend}${more.length > 0 && html`<p class="hint">${more.join(" · ")}</p>`}`
}

const Cache = ({ engine }) => {
  const { t, language } = useText()
  const lines = [
    ["kv", engine?.kv_cache_usage],
    ["prefix", engine?.prefix_cache_usage],
    ["hits", engine?.prefix_cache_hits],
  ].filter(([, part]) => part !== null && part !== undefined)
  if (lines.length === 0) return "–"
  return html`<ul class="fields-of">${lines.map(([name, part]) => html`<li key=${name}><span class="quiet">${t(`server.cache.${name}`)}</span> ${percent(part, language)}</li>`)}</ul>`
}

const columnsOf = (t, language) => {
  const queue = (key) => ({
    key,
    label: t(`server.${key}`),
    number: true,
    cell: (model) =>
      model[`batch_${key}`] > 0
        ? t("server.withBatch", {
            count: count(model[key], language),
            batch: count(model[`batch_${key}`], language),
          })
        : count(model[key], language),
  })
  return [
    {
      key: "model",
      label: t("model"),
      cell: ({ id, task }) => html`<b>${id}</b><p class="hint">${t(`server.task.${task}`)}</p>`,
    },
    { key: "state", label: t("models.state"), cell: (model) => html`<${State} model=${model} />` },
    {
      key: "engine",
      label: t("server.engine"),
      cell: (model) => html`<${Engine} model=${model} />`,
    },
    {
      key: "cache",
      label: t("server.cache"),
      cell: ({ engine }) => html`<${Cache} engine=${engine} />`,
    },
    queue("running"),
    queue("waiting"),
  ]
}

/** Each model with its state, what runs it, its queue on this server, and its caches. */
export const ServerModels = ({ models }) => {
  const { t, language } = useText()
  return html`<section class="card" aria-labelledby="models">
    <h2 id="models">${t("models")}</h2>
    ${
      models.length === 0
        ? html`<p class="quiet">${t("server.noModels")}</p>`
        : html`<${Table} caption=${t("models")} columns=${columnsOf(t, language)} rows=${models} />`
    }
  </section>`
}
