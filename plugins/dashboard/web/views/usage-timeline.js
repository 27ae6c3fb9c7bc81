import { useMemo, useState } from "preact/hooks"
import { useApp, useText } from "../app.js"
import { daysBetween, hoursBetween } from "../format.js"
import { html } from "../html.js"
import { Chart } from "../parts/chart.js"
import { seriesOf } from "../parts/chart-data.js"
import { Field } from "../parts/field.js"
import { useLoad } from "../parts/load.js"
import { Loading, ProblemNotice } from "../parts/notice.js"

/** Up to three days are shown by the hour. */
const mostHourly = 3

const textOf = (isHourly) => (at) =>
  new Date(at * 1000).toISOString().slice(0, isHourly ? 16 : 10) + (isHourly ? "Z" : "")

/** What `path` says of a choice's range, day by day or hour by hour. */
const useTimeline = (path, { from, to, mode }, model) => {
  const { api } = useApp()
  const days = daysBetween(from, to)
  const isHourly = days.length <= mostHourly
  const query = { from, to, mode, model, step: isHourly ? "hour" : "day" }
  const loaded = useLoad(
    async () => ({ ...(await api.get(path, query)), isHourly, from, to }),
    [path, JSON.stringify(query)],
  )
  const steps = useMemo(
    () =>
      loaded.data &&
      (loaded.data.isHourly ? hoursBetween : daysBetween)(loaded.data.from, loaded.data.to),
    [loaded.data],
  )
  return { ...loaded, steps }
}

const lines = [
  ["first_token_ms", "median"],
  ["first_token_ms", "p95"],
  ["duration_ms", "median"],
  ["duration_ms", "p95"],
]

const Latency = ({ data, steps }) => {
  const { t, language } = useText()
  const series = useMemo(() => {
    const byStep = new Map(data.data.map((one) => [textOf(data.isHourly)(one.at), one]))
    return lines
      .filter(([kind]) => data.all[kind])
      .map(([kind, share]) => ({
        label: t(`latency.${kind}.${share}`),
        values: steps.map((step) => byStep.get(step)?.[kind]?.[share] ?? null),
        all: data.all[kind][share],
      }))
  }, [data, language])
  if (series.length === 0) return html`<p class="quiet" role="status">${t("latency.none")}</p>`
  return html`<${Chart} caption=${t(data.isHourly ? "latency.byHour" : "latency.byDay")} series=${series} days=${steps} unit="ms" isLines=${true} />
    <p class="hint">${t("latency.hint")}</p>`
}

const Codes = ({ data, steps }) => {
  const { t, language } = useText()
  const series = useMemo(() => {
    const rows = data.data.map(({ at, code, requests }) => ({
      day: textOf(data.isHourly)(at),
      code,
      requests,
    }))
    return seriesOf(
      rows,
      steps,
      ({ code }) => code,
      t("chart.others"),
      ({ requests }) => requests,
    )
  }, [data, language])
  if (series.length === 0) return html`<p class="quiet" role="status">${t("codes.none")}</p>`
  return html`<${Chart} caption=${t(data.isHourly ? "codes.byHour" : "codes.byDay")} series=${series} days=${steps} unit="count" />
    <p class="hint">${t("codes.hint")}</p>`
}

const kinds = {
  latency: { path: "/dashboard/latency", view: Latency },
  codes: { path: "/dashboard/errors", view: Codes },
}

/** How long calls took, or by which codes requests failed, in the range of the choice; of one model, or all. */
export const Timeline = ({ choice, models }) => {
  const { t } = useText()
  const [model, pick] = useState("")
  const { path, view } = kinds[choice.measure]
  const { data, steps, problem } = useTimeline(path, choice, model)
  return html`<div class="choice"><${Field} label=${t("model")} as="select" value=${model} onChange=${(event) => pick(event.target.value)}><option value="">${t("all")}</option>${models.map(({ id }) => html`<option key=${id}>${id}</option>`)}<//></div>
    <${ProblemNotice} problem=${problem} />
    ${data ? html`<${view} key=${path} data=${data} steps=${steps} />` : !problem && html`<${Loading} />`}`
}
