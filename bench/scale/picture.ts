import type { MeasuredCosts } from "./costs.ts"
import { growTo, type Step, scenarioOf } from "./growth.ts"
import { callsOf } from "./load-profile.ts"
import { factors, farthest, figure, times } from "./page-tables.ts"

/** docs/scale.svg: how far each change reaches. Both axes are logarithmic. */

const [left, top, right, bottom] = [64, 56, 560, 470]
const [width, height] = [960, 540]
const labelsAt = 590
const labelHeight = 37
const colours = ["#2563eb", "#d97706", "#059669", "#9333ea", "#dc2626", "#0891b2", "#65a30d"]
const colourOf = (n: number): string => colours[n % colours.length]!

const escaped = (words: string): string =>
  words.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

const words = (
  x: number,
  y: number,
  content: string,
  { anchor = "start", size = 12, colour = "#222", bold = false } = {},
): string =>
  `<text x="${x}" y="${y}" text-anchor="${anchor}" font-size="${size}" fill="${colour}"${bold ? ' font-weight="bold"' : ""}>${escaped(content)}</text>`

const line = (from: readonly [number, number], to: readonly [number, number], style: string) =>
  `<line x1="${from[0]}" y1="${from[1]}" x2="${to[0]}" y2="${to[1]}" ${style}/>`

const position = (value: number, low: number, high: number): number =>
  Math.log(value / low) / Math.log(high / low)

const xOf = (factor: number): number =>
  Math.round(left + position(Math.min(factor, farthest), 1, farthest) * (right - left))
/** Calls a second grow as the factor does, so both axes have the same decades. */
const yOf = (factor: number): number =>
  Math.round(bottom - position(Math.min(factor, farthest), 1, farthest) * (bottom - top))

const axes = (calls: number): readonly string[] => [
  ...factors.flatMap((factor) => [
    line([xOf(factor), top], [xOf(factor), bottom], 'stroke="#e5e7eb"'),
    line([left, yOf(factor)], [right, yOf(factor)], 'stroke="#e5e7eb"'),
    words(xOf(factor), bottom + 18, times(factor), { anchor: "middle" }),
    words(left - 8, yOf(factor) + 4, figure(factor * calls), { anchor: "end", size: 11 }),
  ]),
  words((left + right) / 2, bottom + 40, "times of today's load", { anchor: "middle" }),
  words(left - 50, top - 14, "paid calls a second", { size: 12 }),
  line([left, bottom], [right, top], 'stroke="#9ca3af" stroke-width="6" stroke-opacity="0.35"'),
]

/** Follows what is asked for until a part is full; flat from there on. */
const served = ({ parts }: Step, n: number): string => {
  const { factor } = parts[0]!
  const [x, y] = [xOf(factor), yOf(factor)]
  const colour = colourOf(n)
  const flat =
    factor >= farthest
      ? ""
      : line([x, y], [right, y], `stroke="${colour}" stroke-width="2" stroke-opacity="0.9"`)
  return `${flat}<circle cx="${x}" cy="${y}" r="6" fill="${colour}" stroke="white" stroke-width="1.5"/>`
}

/** Labels from the top down, none on another, each as near to its line as there is room. */
const labelTops = (wanted: readonly number[]): readonly number[] => {
  const order = wanted.map((y, n) => ({ y, n })).toSorted((a, b) => a.y - b.y || b.n - a.n)
  const room = bottom + 30 - labelHeight * order.length
  let least = Math.max(24, Math.min(room, top - 20))
  const placed = order.map(({ y, n }, i) => {
    const latest = bottom + 20 - labelHeight * (order.length - i)
    const at = Math.max(least, Math.min(y - 12, latest))
    least = at + labelHeight
    return { n, at }
  })
  return placed.toSorted((a, b) => a.n - b.n).map(({ at }) => at)
}

const labels = (steps: readonly Step[]): readonly string[] => {
  const tops = labelTops(steps.map(({ parts }) => yOf(parts[0]!.factor)))
  return steps.flatMap(({ remedy, parts }, n) => {
    const { factor, resource } = parts[0]!
    const [at, colour] = [tops[n]!, colourOf(n)]
    const ends =
      factor > farthest
        ? `nothing is full at ${times(farthest)}`
        : `full first, at ${times(factor)}: ${resource.name}`
    return [
      line(
        [right + 2, yOf(factor)],
        [labelsAt - 6, at + 10],
        `stroke="${colour}" stroke-opacity="0.5"`,
      ),
      words(labelsAt, at + 8, remedy ? `+ ${remedy.short}` : "as today: 3 processes, 1 database", {
        colour,
        bold: true,
        size: 13,
      }),
      words(labelsAt, at + 23, ends, { colour: "#4b5563", size: 11 }),
    ]
  })
}

export const scalePicture = (costs: MeasuredCosts): string => {
  const first = scenarioOf(costs)
  const steps = growTo(first, farthest)
  const title = "How far each change reaches"
  const body = [
    ...axes(callsOf(first.profile)),
    ...steps.map(served).toReversed(),
    ...labels(steps),
  ].join("")
  return `<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="Calls a second against times of today's load: each change serves what is asked for until the next part is full" viewBox="0 0 ${width} ${height}" font-family="sans-serif"><rect width="100%" height="100%" fill="white"/>${words(left - 50, 24, title, { size: 16, bold: true })}${body}</svg>\n`
}
