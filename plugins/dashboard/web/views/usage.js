import { useMemo, useState } from "preact/hooks"
import { useApp, useText } from "../app.js"
import { saveReply } from "../download.js"
import { dayMs, daysBetween, dayText } from "../format.js"
import { html } from "../html.js"
import { Chart } from "../parts/chart.js"
import { seriesOf } from "../parts/chart-data.js"
import { Submit } from "../parts/field.js"
import { Form } from "../parts/form.js"
import { useLoad } from "../parts/load.js"
import { Loading, ProblemNotice } from "../parts/notice.js"
import { groups, measures, timelines, UsageChoice } from "./usage-choice.js"
import { UsageTable } from "./usage-table.js"
import { Timeline } from "./usage-timeline.js"

const queryOf = ({ from, to, mode, group_by }) => ({ from, to, mode, group_by: group_by.join(",") })

/** Names of keys by id: the ledger has ids only. */
const useKeyNames = () => {
  const { api } = useApp()
  const { data } = useLoad(() => api.get("/dashboard/keys", { limit: 100 }), [])
  return useMemo(() => new Map(data?.data.map(({ id, name }) => [id, name])), [data])
}

const Download = ({ choice }) => {
  const { t } = useText()
  const { api } = useApp()
  const save = async () =>
    saveReply(
      await api.send("GET", "/dashboard/usage", { query: { ...queryOf(choice), format: "csv" } }),
      `usage-${choice.from}-${choice.to}.csv`,
    )
  return html`<${Form} onSubmit=${save} label="CSV" actions=${html`<${Submit} look="plain">${t("csv")}<//>`} />`
}

const Sheet = ({ rows, choice, keyNames, models }) => {
  const { t, language } = useText()
  const shown = groups.filter((group) => choice.group_by.includes(group))
  const days = useMemo(() => daysBetween(choice.from, choice.to), [choice])
  const kinds = shown.filter((group) => group !== "day")
  const labelOf = (row) =>
    kinds
      .map((group) => (group === "key" ? (keyNames.get(row.key) ?? row.key) : row[group]) ?? "–")
      .join(" · ") || t("all")
  const amountOf = measures[choice.measure] ?? measures.cost
  const series = useMemo(
    () => seriesOf(rows, days, labelOf, t("chart.others"), amountOf),
    [rows, days, keyNames, language, choice.measure],
  )
  const isTimeline = timelines.includes(choice.measure)
  return html`
    ${isTimeline && html`<${Timeline} key=${choice.measure} choice=${choice} models=${models} />`}
    ${!isTimeline && shown.includes("day") && series.length > 0 && html`<${Chart} caption=${t(`usage.chart.${choice.measure}`)} series=${series} days=${days} unit=${choice.measure === "cost" ? "money" : "count"} isTabled=${false} />`}
    ${rows.length === 0 ? html`<p class="quiet" role="status">${t("usage.none")}</p>` : html`<${UsageTable} rows=${rows} groups=${shown} keyNames=${keyNames} />`}
  `
}

export const Usage = ({ models: { models } }) => {
  const { t } = useText()
  const { api, nowMs } = useApp()
  const keyNames = useKeyNames()
  const [choice, choose] = useState(() => ({
    from: dayText(nowMs() - 29 * dayMs),
    to: dayText(nowMs()),
    mode: "live",
    measure: "cost",
    group_by: ["day", "model"],
  }))
  const { data, problem, busy } = useLoad(
    async () => ({
      asked: choice,
      rows: (await api.get("/dashboard/usage", queryOf(choice))).data,
    }),
    [JSON.stringify(queryOf(choice))],
  )
  const isBeside = ["from", "to"].includes(problem?.param)
  return html`
    <div class="head"><h1>${t("nav.usage")}</h1></div>
    <section class="card">
      <${UsageChoice} choice=${choice} onChoose=${choose} problem=${problem} />
      ${!isBeside && html`<${ProblemNotice} problem=${problem} />`}
      ${busy && !data && html`<${Loading} />`}
      ${data && !problem && html`<${Sheet} rows=${data.rows} choice=${{ ...data.asked, measure: choice.measure }} keyNames=${keyNames} models=${models} /><p class="hint">${t("usage.utc")}</p>`}
      <${Download} choice=${choice} />
    </section>
  `
}
