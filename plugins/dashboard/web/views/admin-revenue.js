import { useMemo, useState } from "preact/hooks"
import { useApp, useText } from "../app.js"
import { saveReply } from "../download.js"
import { count, dayMs, daysBetween, dayText, percent } from "../format.js"
import { html } from "../html.js"
import { Amount } from "../parts/amount.js"
import { Chart } from "../parts/chart.js"
import { Field, Submit } from "../parts/field.js"
import { Figure } from "../parts/figure.js"
import { Form } from "../parts/form.js"
import { useLoad } from "../parts/load.js"
import { Loading, ProblemNotice } from "../parts/notice.js"
import { Table } from "../parts/table.js"
import { Presets } from "./usage-choice.js"

const queryOf = ({ from, to }) => ({ from, to })

/** Returns the report, and the e-mail addresses of its accounts by their ids: the ledger has no addresses. */
const load = async (api, choice) => {
  const report = await api.get("/admin/revenue", queryOf(choice))
  const ids = report.accounts.map(({ name }) => name).join(",")
  const named = ids === "" ? { data: [] } : await api.get("/admin/accounts", { ids })
  return { report, choice, emails: new Map(named.data.map(({ id, email }) => [id, email])) }
}

const Download = ({ choice }) => {
  const { t } = useText()
  const { api } = useApp()
  const save = async () =>
    saveReply(
      await api.send("GET", "/admin/revenue", { query: { ...queryOf(choice), format: "csv" } }),
      `revenue-${choice.from}-${choice.to}.csv`,
    )
  return html`<${Form} onSubmit=${save} label="CSV" actions=${html`<${Submit} look="plain">${t("csv")}<//>`} />`
}

const credits = ["top_up", "grant", "free_credit", "correction"]

const Figures = ({ report }) => {
  const { t, language } = useText()
  const { total, batch_idr, paying_accounts } = report
  const share = total.charged_idr > 0 ? batch_idr / total.charged_idr : 0
  const requests = t("revenue.requests", { count: count(total.requests, language) })
  return html`
    <div class="figures">
      <${Figure} label=${t("revenue.charged")} value=${html`<${Amount} value=${total.charged_idr} />`} hint=${requests} />
      <${Figure} label=${t("revenue.batch")} value=${percent(share, language)} hint=${html`<${Amount} value=${batch_idr} />`} />
      <${Figure} label=${t("revenue.paying")} value=${count(paying_accounts, language)} hint=${t("revenue.paying.hint")} />
    </div>
  `
}

/** What came into balances beside it, by its kind. */
const Credit = ({ credit }) => {
  const { t, language } = useText()
  return html`
    <section class="card" aria-labelledby="credit">
      <h2 id="credit">${t("revenue.credit")}</h2>
      <p class="hint">${t("revenue.credit.hint")}</p>
      <${Table} caption=${t("revenue.credit")} columns=${[
        { key: "kind", label: t("revenue.kind"), cell: (kind) => t(`revenue.credit.${kind}`) },
        {
          key: "entries",
          label: t("revenue.entries"),
          number: true,
          cell: (kind) => count(credit[kind].entries, language),
        },
        {
          key: "amount",
          label: t("revenue.amount"),
          number: true,
          cell: (kind) =>
            html`<${Amount} value=${kind === "correction" ? -credit[kind].idr : credit[kind].idr} />`,
        },
      ]} rows=${credits} rowKey=${(kind) => kind} />
    </section>
  `
}

/** Sums of one group, the largest first, each with its part of the whole. */
const Sums = ({ title, label, rows, total, nameOf = ({ name }) => name ?? "–" }) => {
  const { t, language } = useText()
  const id = `by-${title}`
  const columns = [
    { key: "name", label, cell: nameOf },
    {
      key: "requests",
      label: t("usage.requests"),
      number: true,
      cell: ({ requests }) => count(requests, language),
    },
    {
      key: "charged",
      label: t("revenue.charged"),
      number: true,
      cell: ({ charged_idr }) => html`<${Amount} value=${charged_idr} />`,
    },
    {
      key: "part",
      label: t("revenue.part"),
      number: true,
      cell: ({ charged_idr }) => percent(total > 0 ? charged_idr / total : 0, language),
    },
  ]
  return html`<section class="card" aria-labelledby=${id}>
    <h2 id=${id}>${t(`revenue.by.${title}`)}</h2>
    <${Table} caption=${t(`revenue.by.${title}`)} columns=${columns} rows=${rows} rowKey=${({ name }) => name ?? ""} />
  </section>`
}

const Report = ({ data: { report, choice, emails } }) => {
  const { t } = useText()
  const days = useMemo(() => daysBetween(choice.from, choice.to), [choice])
  const series = useMemo(() => {
    const charged = new Map(report.days.map(({ name, charged_idr }) => [name, charged_idr]))
    return [{ label: t("revenue.charged"), values: days.map((day) => charged.get(day) ?? 0) }]
  }, [report, days, t("revenue.charged")])
  const total = report.total.charged_idr
  const account = ({ name }) =>
    emails.has(name)
      ? html`<span title=${name}>${emails.get(name)}</span>`
      : html`<code>${name}</code>`
  return html`
    <${Figures} report=${report} />
    ${
      report.days.length === 0
        ? html`<p class="quiet" role="status">${t("revenue.none")}</p><${Credit} credit=${report.credit} />`
        : html`
      <section class="card" aria-labelledby="by-day">
        <h2 id="by-day">${t("revenue.by.day")}</h2>
        <${Chart} caption=${t("revenue.by.day")} series=${series} days=${days} />
        <p class="hint">${t("usage.utc")}</p>
      </section>
      <${Credit} credit=${report.credit} />
      <div class="cards">
        <${Sums} title="model" label=${t("group.model")} rows=${report.models} total=${total} />
        <${Sums} title="endpoint" label=${t("group.endpoint")} rows=${report.endpoints} total=${total} />
      </div>
      <${Sums} title="account" label=${t("revenue.account")} rows=${report.accounts} total=${total} nameOf=${account} />`
    }
  `
}

/** What all accounts were charged in a range of days. */
export const AdminRevenue = () => {
  const { t } = useText()
  const { api, nowMs } = useApp()
  const [choice, choose] = useState(() => ({
    from: dayText(nowMs() - 29 * dayMs),
    to: dayText(nowMs()),
  }))
  const { data, problem, busy } = useLoad(() => load(api, choice), [choice.from, choice.to])
  const put = (name) => (event) =>
    event.target.value && choose({ ...choice, [name]: event.target.value })
  const isBeside = ["from", "to"].includes(problem?.param)
  return html`
    <section class="card" aria-label=${t("range")}>
      <div class="head"><p class="quiet">${t("revenue.what")}</p><${Download} choice=${choice} /></div>
      <${Presets} choice=${choice} onChoose=${choose} />
      <div class="choice">
        <${Field} label=${t("from")} name="from" problem=${problem} type="date" value=${choice.from} onChange=${put("from")} />
        <${Field} label=${t("to")} name="to" problem=${problem} type="date" value=${choice.to} onChange=${put("to")} />
      </div>
      ${!isBeside && html`<${ProblemNotice} problem=${problem} />`}
      ${busy && !data && html`<${Loading} />`}
    </section>
    ${data && !problem && html`<${Report} data=${data} />`}
  `
}
