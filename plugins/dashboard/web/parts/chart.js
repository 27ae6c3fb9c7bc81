import { useEffect, useRef, useState } from "preact/hooks"
import { useText } from "../app.js"
import { count, day, decimal } from "../format.js"
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
}

const Value = ({ unit, value }) => {
  const { language } = useText()
  return unit === "money" ? html`<${Amount} value=${value} />` : count(value, language)
}

const optionsOf = ({ uPlot, width, colours, series, days, language, unit }) => {
  const axis = {
    stroke: colours.text,
    grid: { stroke: colours.line, width: 1 },
    ticks: { stroke: colours.line, width: 1 },
    font: "12px system-ui",
  }
  const bars = uPlot.paths.bars({ size: [0.75, 48], gap: 1 })
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
        space: 64,
        incrs: [1, 2, 5, 7, 10, 14, 30, 60],
      },
      {
        ...axis,
        values: (_, at) => at.map((value) => shortly[unit](value, language)),
        size: 76,
      },
    ],
    // the highest sum is drawn first, so that the ones in front of it leave its own part visible
    series: [
      {},
      ...series
        .map(({ label }, at) => ({
          label,
          paths: bars,
          fill: colours.series[at],
          stroke: colours.series[at],
          width: 0,
          points: { show: false },
        }))
        .reverse(),
    ],
  }
}

const draw = async (element, { series, days, language, unit, onDay }) => {
  const { default: uPlot } = await import("uplot")
  const options = optionsOf({
    uPlot,
    width: element.clientWidth,
    colours: coloursOf(element),
    series,
    days,
    language,
    unit,
  })
  const plot = new uPlot(
    { ...options, hooks: { setCursor: [({ cursor }) => onDay(cursor.idx ?? undefined)] } },
    [days.map((_, at) => at), ...stackOf(series).reverse()],
    element,
  )
  return plot
}

const useDrawing = (frame, { series, days, language, unit, onDay }) => {
  useEffect(() => {
    const element = frame.current
    const dark = matchMedia("(prefers-color-scheme: dark)")
    let plot
    let round = 0
    const redraw = async () => {
      const mine = ++round
      const next = await draw(element, { series, days, language, unit, onDay })
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
  }, [series, days, language, unit])
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

/** Values per day, stacked; `unit`: money or count. The legend shows the day under the pointer, or else the sums; a table has the same values unless the page has one already. */
export const Chart = ({ caption, series, days, unit = "money", isTabled = true }) => {
  const { t, language } = useText()
  const frame = useRef()
  const [at, onDay] = useState(undefined)
  useDrawing(frame, { series, days, language, unit, onDay })
  const shown = ({ values }) =>
    at === undefined ? values.reduce((sum, value) => sum + value, 0) : values[at]
  return html`<figure class="chart">
    <div ref=${frame} class="canvas" role="img" aria-label=${caption}></div>
    <ul class="legend">
      <li class="quiet">${at === undefined ? t("chart.all") : day(days[at], language)}</li>
      ${series.map((one, index) => html`<li key=${one.label}><i class=${`swatch series-${index + 1}`}></i>${one.label} <b><${Value} unit=${unit} value=${shown(one)} /></b></li>`)}
    </ul>
    ${isTabled && html`<${DayTable} caption=${caption} series=${series} days=${days} unit=${unit} />`}
  </figure>`
}
