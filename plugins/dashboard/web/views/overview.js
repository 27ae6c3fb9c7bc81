import { useMemo } from "preact/hooks"
import { useApp, useText } from "../app.js"
import { dayMs, daysBetween, dayText } from "../format.js"
import { html } from "../html.js"
import { Amount } from "../parts/amount.js"
import { Chart } from "../parts/chart.js"
import { seriesOf } from "../parts/chart-data.js"
import { Figure } from "../parts/figure.js"
import { useLoad } from "../parts/load.js"
import { Loading, ProblemNotice } from "../parts/notice.js"
import { useStore } from "../store.js"
import { Models } from "./models.js"

const daysShown = 30

/** From 30 days ago or the start of the month, whichever is earlier: on a 31st the month has one day more. */
const spanOf = (nowMs) => {
  const today = dayText(nowMs)
  const month = `${today.slice(0, 8)}01`
  const first = dayText(nowMs - (daysShown - 1) * dayMs)
  return { today, month, first, from: first < month ? first : month }
}

/** Loaded again when the balance changes. */
const useSpend = (balance) => {
  const { api, nowMs } = useApp()
  const { t, language } = useText()
  const span = useMemo(() => spanOf(nowMs()), [])
  const { data, problem } = useLoad(
    () => api.get("/dashboard/usage", { from: span.from, group_by: "day,model" }),
    [balance],
  )
  const days = useMemo(() => daysBetween(span.first, span.today), [span])
  const series = useMemo(
    () =>
      data &&
      seriesOf(
        data.data.filter(({ day }) => day >= span.first),
        days,
        ({ model }) => model ?? "–",
        t("chart.others"),
      ),
    [data, language],
  )
  const month = data?.data
    .filter(({ day }) => day >= span.month)
    .reduce((sum, { cost_idr }) => sum + cost_idr, 0)
  return { problem, days, series, month }
}

export const Overview = ({ models }) => {
  const { t } = useText()
  const { me } = useStore(useApp().account)
  const { problem, days, series, month } = useSpend(me.balance_idr)
  return html`
    <h1>${t("nav.overview")}</h1>
    <div class="figures">
      <${Figure} label=${t("balance")} value=${html`<${Amount} value=${me.balance_idr} />`} />
      <${Figure} label=${t("held")} value=${html`<${Amount} value=${me.held_idr} />`} hint=${t("held.hint")} />
      <${Figure} label=${t("month")} value=${month === undefined ? "…" : html`<${Amount} value=${Number(month.toFixed(6))} />`} />
    </div>
    <section class="card" aria-labelledby="spend">
      <h2 id="spend">${t("spend.days", { days: daysShown })}</h2>
      <${ProblemNotice} problem=${problem} />
      ${!series && !problem && html`<${Loading} />`}
      ${series?.length === 0 && html`<p class="quiet">${t("spend.none")} <a href="#playground">${t("nav.playground")}</a></p>`}
      ${series?.length > 0 && html`<${Chart} caption=${t("spend.days", { days: daysShown })} series=${series} days=${days} />`}
    </section>
    <${Models} models=${models} />
  `
}
