export interface Line {
  readonly name: string
  readonly points: readonly (readonly [number, number])[]
}

export interface Panel {
  readonly title: string
  readonly xLabel: string
  readonly lines: readonly Line[]
}

const [width, height, left, top, bottom] = [460, 340, 56, 40, 106]
const colours = ["#2563eb", "#d97706", "#059669", "#9333ea"]

const niceCeiling = (value: number): number => {
  const power = 10 ** Math.floor(Math.log10(value))
  return [1, 2, 2.5, 5, 10].map((step) => step * power).find((step) => step >= value)!
}

const text = (x: number, y: number, words: string, anchor = "middle", size = 12): string =>
  `<text x="${x}" y="${y}" text-anchor="${anchor}" font-size="${size}">${words}</text>`

/** Logarithmic x axis; ticks at the points. */
const panel = ({ title, xLabel, lines }: Panel, shift: number): string => {
  const all = lines.flatMap((line) => line.points)
  const marks = [...new Set(all.map(([x]) => x))].sort((a, b) => a - b)
  const most = niceCeiling(Math.max(...all.map(([, y]) => y)))
  const [low, high] = [Math.log2(marks[0]!), Math.log2(marks.at(-1)!)]
  const xOf = (x: number) =>
    Math.round(left + ((Math.log2(x) - low) / (high - low || 1)) * (width - left - 20))
  const yOf = (y: number) => Math.round(top + (1 - y / most) * (height - top - bottom))
  const grid = [0, 0.25, 0.5, 0.75, 1].map((share) => {
    const y = yOf(share * most)
    return `<line x1="${left}" x2="${width - 20}" y1="${y}" y2="${y}" stroke="#ddd"/>${text(left - 6, y + 4, String(share * most), "end", 11)}`
  })
  const drawn = lines.map(({ name, points }, i) => {
    const colour = colours[i % colours.length]!
    const path = points.map(([x, y]) => `${xOf(x)},${yOf(y)}`).join(" ")
    const dots = points
      .map(([x, y]) => `<circle cx="${xOf(x)}" cy="${yOf(y)}" r="3" fill="${colour}"/>`)
      .join("")
    const y = height - 14 - (lines.length - 1 - i) * 18
    return `<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="2"/>${dots}<rect x="${left}" y="${y}" width="10" height="10" fill="${colour}"/>${text(left + 14, y + 9, name, "start", 11)}`
  })
  const axis = marks.map((x) =>
    text(xOf(x), height - bottom + 18, x.toLocaleString("en-US"), "middle", 11),
  )
  return `<g transform="translate(${shift},0)">${text(width / 2, 20, title, "middle", 14)}${grid.join("")}${axis.join("")}${text(width / 2, height - bottom + 36, xLabel)}${drawn.join("")}</g>`
}

/** Panels side by side, as an SVG file. */
export const lineCharts = (panels: readonly Panel[]): string =>
  `<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="Tokens a second, by streams and by context" viewBox="0 0 ${panels.length * width} ${height}" font-family="sans-serif" fill="#222"><rect width="100%" height="100%" fill="white"/>${panels
    .map((one, i) => panel(one, i * width))
    .join("")}</svg>\n`
