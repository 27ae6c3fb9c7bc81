import { count, day, rupiah } from "../format.js"
import { html } from "../html.js"

const counted = ["requests", "errors", "input_tokens", "output_tokens"]

const groupCell = ({ group, language, keyNames }) => {
  if (group === "day") return (row) => day(row.day, language)
  if (group === "key") return (row) => keyNames.get(row.key) ?? html`<code>${row.key ?? "–"}</code>`
  return (row) => row[group] ?? "–"
}

export const columnsOf = ({ t, language, groups, keyNames }) => [
  ...groups.map((group) => ({ key: group, label: t(`group.${group}`), cell: groupCell({ group, language, keyNames }) })),
  ...counted.map((name) => ({ key: name, label: t(`usage.${name}`), number: true, cell: (row) => count(row[name], language) })),
  { key: "cost", label: t("usage.cost"), number: true, cell: (row) => rupiah(row.cost_idr) },
]

/** The last line: what the rows make together. Sums of decimals are rounded to what the books count. */
export const sumOf = ({ t, language, rows, groups }) => {
  const sum = (name) => rows.reduce((total, row) => total + row[name], 0)
  const totals = Object.fromEntries(counted.map((name) => [name, count(sum(name), language)]))
  return { ...(groups[0] && { [groups[0]]: t("sum") }), ...totals, cost: rupiah(Number(sum("cost_idr").toFixed(6))) }
}
