import { useEffect, useRef, useState } from "preact/hooks"
import { useText } from "../app.js"
import { count, day, decimal, duration } from "../format.js"
import { html } from "../html.js"
import { Amount } from "./amount.js"
import { stackOf } from "./chart-data.js"
import { Table } from "./table.js"

const height = 240

/** The canvas has no style sheet, so the current colours of its frame and of the legend are passed to it. */
const coloursOf = (element) => {
  const { color, borderTopColor } = getComputedStyle(element)
  return {
    text: color,
    line: borderTopColor,
    series: [...element.parentElement.querySelectorAll(".swatch")].map(
      (swatch) => getComputedStyle(swatch).backgroundColor,
    ),
  }
}

/** How values of a unit are written: exactly in the legend, shortly at the axis. */
const shortly = {
  money: (value, language) => `Rp\u00a0${decimal(value, language)}`,
  count: decimal,
  ms: duration,
}

const Value = ({ unit, value }) => {
  const { language } = useText()
  if (value === null) return "–"
  if (unit === "ms") return duration(value, language)
  return unit === "money" ? html`<${Amount} value=${value} />` : count(value, language)
}

/** The highest sum of a stack is drawn first, so that the ones in front of it leave its own part visible. */
const barsOf = ({ uPlot, colours, series }) => {
  const paths = uPlot.paths.bars({ size: [0.75, 48], gap: 1 })
  return series
    .map(({ label }, at) => {
      const colour = colours.series[at]
      return { label, paths, fill: colour, stroke: colour, width: 0, points: { show: false } }
    })
    .reverse()
}

/** Days without a value are left out of a line, so each value has a point of its own. */
const linesOf = ({ colours, series }) =>
  series.map(({ label }, at) => ({
    label,
    stroke: colours.series[at],
    width: 2,
    points: { show: true, size: 5, fill: colours.series[at] },
  }))

const optionsOf = ({ uPlot, width, colours, series, days, language, unit, isLines }) => {
  const axis = {
    stroke: colours.text,
    grid: { stroke: colours.line, width: 1 },
    ticks: { stroke: colours.line, width: 1 },
    font: "12px system-ui",
  }
  const isHourly = days[0]?.includes("T")
  return {
    width,
    height,
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    scales: {
      x: { time: false, range: [-0.6, days.length - 0.4] },
      y: { range: (_, __, top) => [0, top > 0 ? top * 1.08 : 1] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        values: (_, at) =>
          at.map((index) =>
            Number.isInteger(index) && days[index] ? day(days[index], language) : "",
          ),
        ...(isHourly
          ? { space: 104, incrs: [3, 6, 12, 24] }
          : { space: 64, incrs: [1, 2, 5, 7, 10, 14, 30, 60] }),
      },
      {
        ...axis,
        values: (_, at) => at.map((value) => shortly[unit](value, language)),
        size: 76,
      },
    ],
    series: [{}, ...(isLines ? linesOf : barsOf)({ uPlot, colours, series })],
  }
}

const draw = async (element, { series, days, language, unit, isLines, onDay }) => {
  const { default: uPlot } = await import("uplot")
  const options = optionsOf({
    uPlot,
    width: element.clientWidth,
    colours: coloursOf(element),
    series,
    days,
    language,
    unit,
    isLines,
  })
  const values = isLines ? series.map((one) => one.values) : stackOf(series).reverse()
  const plot = new uPlot(
    { ...options, hooks: { setCursor: [({ cursor }) => onDay(cursor.idx ?? undefined)] } },
    [days.map((_, at) => at), ...values],
    element,
  )
  return plot
}

const useDrawing = (frame, { series, days, language, unit, isLines, onDay }) => {
  useEffect(() => {
    const element = frame.current
    const dark = matchMedia("(prefers-color-scheme: dark)")
    let plot
    let round = 0
    const redraw = async () => {
      const mine = ++round
      const next = await draw(element, { series, days, language, unit, isLines, onDay })
      if (mine !== round) return next.destroy()
      plot?.destroy()
      plot = next
    }
    const fit = new ResizeObserver(() => plot?.setSize({ width: element.clientWidth, height }))
    redraw()
    fit.observe(element)
    dark.addEventListener("change", redraw)
    return () => {
      round++
      fit.disconnect()
      dark.removeEventListener("change", redraw)
      plot?.destroy()
    }
  }, [series, days, language, unit, isLines])
}

const DayTable = ({ caption, series, days, unit }) => {
  const { t, language } = useText()
  const columns = [
    { key: "day", label: t("day"), cell: ({ day: text }) => day(text, language) },
    ...series.map(({ label, values }) => ({
      key: label,
      label,
      number: true,
      cell: ({ index }) => html`<${Value} unit=${unit} value=${values[index]} />`,
    })),
  ]
  const spent = days
    .map((text, index) => ({ id: text, day: text, index }))
    .filter(({ index }) => series.some(({ values }) => values[index] > 0))
  return html`<details><summary>${t("chart.table")}</summary><${Table} caption=${caption} columns=${columns} rows=${spent.reverse()} /></details>`
}

/** Values per day (or hour), stacked, or with `isLines` as lines whose series say what is so of `all` days; `unit`: money, count or ms. The legend shows the day under the pointer, or else the sums; a table has the same values unless the page has one already. */
export const Chart = ({
  caption,
  series,
  days,
  unit = "money",
  isLines = false,
  isTabled = true,
}) => {
  const { t, language } = useText()
  const frame = useRef()
  const [at, onDay] = useState(undefined)
  useDrawing(frame, { series, days, language, unit, isLines, onDay })
  const shown = ({ values, all }) =>
    at === undefined ? (all ?? values.reduce((sum, value) => sum + value, 0)) : values[at]
  return html`<figure class="chart">
    <div ref=${frame} class="canvas" role="img" aria-label=${caption}></div>
    <ul class="legend">
      <li class="quiet">${at === undefined ? t("chart.all") : day(days[at], language)}</li>
      ${series.map((one, index) => html`<li key=${one.label}><i class=${`swatch series-${index + 1}`}></i>${one.label} <b><${Value} unit=${unit} value=${shown(one)} /></b></li>`)}
    </ul>
    ${isTabled && html`<${DayTable} caption=${caption} series=${series} days=${days} unit=${unit} />`}
  </figure>`
}
