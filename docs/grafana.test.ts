import { readFileSync } from "node:fs"
import { describe, expect, test } from "vitest"
import { allMetrics } from "./metrics-page.ts"

interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly datasource?: { readonly uid: string }
  readonly gridPos: {
    readonly x: number
    readonly y: number
    readonly w: number
    readonly h: number
  }
  readonly targets?: readonly {
    readonly refId: string
    readonly expr: string
    readonly datasource: { readonly uid: string }
  }[]
}

const board = JSON.parse(
  readFileSync(new URL("../config/grafana.json", import.meta.url), "utf8"),
) as {
  readonly id: null
  readonly uid: string
  readonly schemaVersion: number
  readonly panels: readonly Panel[]
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly type: string }[]
  }
}
const charts = board.panels.filter(({ type }) => type !== "row")
const targets = charts.flatMap((panel) => panel.targets ?? [])

describe("config/grafana.json", () => {
  test("is a board that can be imported: no id of another Grafana, ids and titles once", () => {
    expect(board).toMatchObject({ id: null, uid: "rakit", schemaVersion: 39 })
    for (const of of ["id", "title"] as const)
      expect(new Set(board.panels.map((panel) => panel[of])).size).toBe(board.panels.length)
  })

  test("takes its data source from a variable", () => {
    expect(board.templating.list.map(({ name, type }) => [name, type])).toEqual([
      ["datasource", "datasource"],
      ["model", "query"],
      ["priority", "custom"],
    ])
    const sources = [...charts, ...targets].map(({ datasource }) => datasource?.uid)
    expect(new Set(sources)).toEqual(new Set(["${datasource}"]))
  })

  test("its panels lie beside each other on 24 columns", () => {
    const cells = board.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, at) => `${x + (at % w)} ${y + Math.floor(at / w)}`),
    )
    expect(new Set(cells).size).toBe(cells.length)
    expect(Math.max(...board.panels.map(({ gridPos: { x, w } }) => x + w))).toBe(24)
  })

  test("asks for metrics and labels that there are", () => {
    const metrics = new Map(
      allMetrics().flatMap((metric) => {
        const names =
          metric.kind === "histogram"
            ? ["_bucket", "_sum", "_count"].map((end) => metric.name + end)
            : [metric.name]
        return names.map((name) => [name, metric] as const)
      }),
    )
    const wrong = targets.flatMap(({ expr }) =>
      [...expr.matchAll(/\b(rakit_\w+)(?:\{([^}]*)\})?/g)].flatMap(([, name, matchers = ""]) => {
        const metric = metrics.get(name!)
        if (!metric) return [name]
        const labels = [...matchers.matchAll(/(\w+)[=!]~?"/g)].map(([, label]) => label!)
        return labels
          .filter((label) => !metric.labels.includes(label))
          .map((label) => `${name} {${label}}`)
      }),
    )
    expect(wrong).toEqual([])
    for (const { expr } of targets)
      expect([expr, expr.split("(").length]).toEqual([expr, expr.split(")").length])
  })

  test("shows every metric of models, batches, knowledge files and the database", () => {
    const shown = targets.map(({ expr }) => expr).join("\n")
    const missing = allMetrics()
      .filter(
        ({ labels, name }) => labels.includes("model_name") || /_(batch|db|ingest)_/.test(name),
      )
      .filter(({ name }) => !shown.includes(name))
    expect(missing).toEqual([])
  })
})
