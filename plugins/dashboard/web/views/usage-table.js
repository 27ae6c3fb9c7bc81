import { useMemo, useState } from "preact/hooks"
import { useText } from "../app.js"
import { count, day } from "../format.js"
import { html } from "../html.js"
import { Amount } from "../parts/amount.js"
import { Button } from "../parts/button.js"
import { rowsAtOnce } from "../parts/list.js"
import { Table } from "../parts/table.js"

const counted = ["requests", "errors", "input_tokens", "output_tokens"]

const groupCell = ({ group, language, keyNames }) => {
  if (group === "day") return (row) => day(row.day, language)
  if (group === "key") return (row) => keyNames.get(row.key) ?? html`<code>${row.key ?? "–"}</code>`
  return (row) => row[group] ?? "–"
}

const columnsOf = ({ t, language, groups, keyNames }) => [
  ...groups.map((group) => ({
    key: group,
    label: t(`group.${group}`),
    cell: groupCell({ group, language, keyNames }),
  })),
  ...counted.map((name) => ({
    key: name,
    label: t(`usage.${name}`),
    number: true,
    cell: (row) => count(row[name], language),
  })),
  {
    key: "cost",
    label: t("usage.cost"),
    number: true,
    cell: (row) => html`<${Amount} value=${row.cost_idr} />`,
  },
]

/** The totals. Sums of decimals are rounded to the ledger's precision. */
const sumOf = ({ t, language, rows, groups }) => {
  const sum = (name) => rows.reduce((total, row) => total + row[name], 0)
  const totals = Object.fromEntries(counted.map((name) => [name, count(sum(name), language)]))
  return {
    ...(groups[0] && { [groups[0]]: t("sum") }),
    ...totals,
    cost: html`<${Amount} value=${Number(sum("cost_idr").toFixed(6))} />`,
  }
}

/** Newest day first. Thousands of rows are slow in a browser, so they are shown on request; the totals are those of all rows. */
export const UsageTable = ({ rows, groups, keyNames }) => {
  const { t, language } = useText()
  const [most, show] = useState(rowsAtOnce(200))
  const sorted = useMemo(
    () =>
      groups.includes("day")
        ? [...rows].sort((a, b) => (a.day < b.day ? 1 : a.day > b.day ? -1 : 0))
        : rows,
    [rows],
  )
  const columns = columnsOf({ t, language, groups, keyNames })
  return html`
    <${Table} caption=${t("nav.usage")} columns=${columns} rows=${sorted.slice(0, most)} rowKey=${(_, index) => index} foot=${sumOf({ t, language, rows, groups })} />
    ${sorted.length > most && html`<div class="actions"><${Button} onClick=${() => show(most + rowsAtOnce(200))}>${t("more")}<//></div>`}
  `
}
