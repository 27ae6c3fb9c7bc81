const mostSeries = 6

/** Returns a series per group with one value per day; the smallest groups are summed up as `others`. */
export const seriesOf = (rows, days, labelOf, others, amountOf = ({ cost_idr }) => cost_idr) => {
  const byLabel = new Map()
  for (const row of rows) {
    const label = labelOf(row)
    const values = byLabel.get(label) ?? new Map()
    values.set(row.day, (values.get(row.day) ?? 0) + amountOf(row))
    byLabel.set(label, values)
  }
  const all = [...byLabel].map(([label, values]) => ({
    label,
    values: days.map((day) => values.get(day) ?? 0),
    sum: [...values.values()].reduce((a, b) => a + b, 0),
  }))
  const sorted = all
    .sort((a, b) => b.sum - a.sum || (a.label < b.label ? -1 : 1))
    .map(({ label, values }) => ({ label, values }))
  if (sorted.length <= mostSeries) return sorted
  const rest = sorted.slice(mostSeries - 1)
  return [
    ...sorted.slice(0, mostSeries - 1),
    {
      label: others,
      values: days.map((_, at) => rest.reduce((sum, { values }) => sum + values[at], 0)),
    },
  ]
}

/** Returns the cumulative sums for a stacked chart: the highest first, each next one in front of it. */
export const stackOf = (series) => {
  const sums = []
  for (const { values } of series)
    sums.push(values.map((value, at) => value + (sums.at(-1)?.[at] ?? 0)))
  return sums
}
