import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "../deployment/code.ts"
import { figure } from "../measure/table.ts"
import { type Line, lineCharts } from "./line-chart.ts"
import type { MemorySample } from "./served.ts"

export interface Table {
  readonly title: string
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

export interface Report {
  readonly machine: readonly string[]
  readonly command: string
  readonly tables: readonly Table[]
  readonly byStreams: readonly Line[]
  readonly byContext: readonly Line[]
  readonly memory: readonly MemorySample[]
}

const markdown = ({ title, head, rows }: Table): string =>
  [
    `## ${title}`,
    "",
    `| ${head.join(" | ")} |`,
    `|${head.map((_, i) => (i ? " ---: |" : " --- |")).join("")}`,
    ...rows.map((row) => `| ${row.join(" | ")} |`),
  ].join("\n")

const memoryTable = (samples: readonly MemorySample[]): Table => ({
  title: "Memory of the whole server, a tiny model, each request with a text of its own",
  head: ["requests", ...samples.map(({ requests }) => requests.toLocaleString("en-US"))],
  rows: [["resident MB", ...samples.map(({ residentMb }) => figure(residentMb))]],
})

/** Writes docs/engine.md and docs/engine.svg. */
export const writeReport = ({
  machine,
  command,
  tables,
  byStreams,
  byContext,
  memory,
}: Report): void => {
  const all = [...tables, ...(memory.length ? [memoryTable(memory)] : [])]
  const text = [
    "# The chat engine, measured",
    "",
    "Written by `bench/chat.ts`; do not edit. Tokens a second are those of all streams together. Sides alternate; figures are medians of the rounds, ratios are taken within a round.",
    "",
    ...machine.map((line) => `- ${line}`),
    `- command: \`${command}\``,
    "",
    "![Tokens a second against streams and context](engine.svg)",
    "",
    ...all.flatMap((table) => [markdown(table), ""]),
  ].join("\n")
  writeFileSync(join(root, "docs/engine.md"), text)
  const panels = [
    { title: "Tokens a second, short prompts", xLabel: "streams", lines: byStreams },
    { title: "Tokens a second while writing", xLabel: "tokens in the context", lines: byContext },
  ]
  writeFileSync(join(root, "docs/engine.svg"), lineCharts(panels))
}
