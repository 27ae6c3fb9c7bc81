// What a newcomer waits for: sign-up to the first answer, `rakit init` to a model of one's own, and
// the loads of the pages. `npm run build && npm run docs:site && RAKIT_MODELS=folder node --import
// tsx bench/first-hour.ts [--rounds 3] [--quiet 1500] [--only walks,models,pages]`
import { mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import type { Browser } from "playwright-core"
import { openGguf } from "../plugins/backend-onnx/weights/gguf-file.ts"
import { openBrowser } from "../plugins/dashboard/testing/chromium.ts"
import { type Platform, startPlatform } from "../testing/platform.ts"
import { writeRandomGguf } from "./chat/random-gguf.ts"
import { codeInWords, root } from "./deployment/code.ts"
import { signIn, signUpAndChat } from "./first-hour/newcomer.ts"
import { serveOwnModel } from "./first-hour/own-model.ts"
import { devices, loadTwice, type PageLoad } from "./first-hour/page-load.ts"
import { printLoadAfter, printMachine } from "./measure/machine.ts"
import { figure, printTable } from "./measure/table.ts"

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "3" },
    quiet: { type: "string", default: "1500" },
    only: { type: "string", default: "walks,models,pages" },
  },
})
const [rounds, quietMs] = [Number(values.rounds), Number(values.quiet)]
const modelsDir = process.env.RAKIT_MODELS
const startedMs = performance.now()

/** Each figure's least of the rounds: other programs only ever add. */
const leastOf = <T extends object>(tries: readonly T[]): T =>
  Object.fromEntries(
    Object.keys(tries[0]!).map((key) => [
      key,
      Math.min(...tries.map((one) => one[key as keyof T] as number)),
    ]),
  ) as T

const repeated = async <T extends object>(work: (round: number) => Promise<T>): Promise<T> => {
  const tries: T[] = []
  for (let round = 0; round < rounds; round++) tries.push(await work(round))
  return leastOf(tries)
}

const seconds = (ms: number): string => figure(ms / 1000)

const walks = async (browser: Browser, platform: Platform): Promise<void> => {
  const walk = await repeated((round) =>
    signUpAndChat(browser, platform, `newcomer-${round}@example.com`),
  )
  printTable(
    `Sign-up to the first answer, s from the dashboard's address (least of ${rounds})`,
    ["form filled", "signed in", "address confirmed", "first text", "whole answer"],
    [
      [walk.formMs, walk.overviewMs, walk.confirmedMs, walk.firstTextMs, walk.answeredMs].map(
        seconds,
      ),
    ],
  )
}

const starterFile = (): string => {
  if (!modelsDir) throw new Error("RAKIT_MODELS must name a folder with the starter's models")
  const names = readdirSync(modelsDir, { recursive: true, encoding: "utf8" })
  const found = names.find((name) => name.endsWith("SmolLM2-135M-Instruct.Q4_1.gguf"))
  if (!found) throw new Error(`${modelsDir} has no chat model: rakit models pull`)
  return join(modelsDir, found)
}

const models = async (): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-first-hour-"))
  try {
    const random = join(folder, "random-360m.gguf")
    writeRandomGguf(random, "360M", () => "Q4_0", openGguf(starterFile()))
    const rows: string[][] = []
    for (const [name, file] of [
      ["the starter's chat model, 135M Q4_1", starterFile()],
      ["random weights, 360M Q4_0", random],
    ] as const) {
      const one = await repeated(() => serveOwnModel(file))
      const times = [one.initMs, one.checkMs, one.readyMs, one.firstTokenMs, one.allMs]
      rows.push([name, ...times.map(seconds)])
    }
    const head = ["s", "init", "check", "serve: model open", "first token of a call", "all of it"]
    printTable(`rakit init to a model of one's own (least of ${rounds})`, head, rows)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const pages = [
  { name: "dashboard, signed out", path: "/dashboard", isSignedIn: false },
  { name: "overview, signed in", path: "/dashboard#overview", isSignedIn: true },
  { name: "/docs", path: "/docs", isSignedIn: false },
  { name: "/docs/guide", path: "/docs/guide", isSignedIn: false },
]

const loads = async (browser: Browser, platform: Platform): Promise<void> => {
  const row = (name: string, one: PageLoad) => [
    name,
    figure(one.firstPaintMs),
    figure(one.largestPaintMs),
    one.layoutShift.toFixed(3),
    figure(one.blockedMs),
    String(one.requests),
    figure(one.transferredKb),
  ]
  const head = ["", "FCP ms", "LCP ms", "CLS", "TBT ms", "requests", "kB"]
  for (const device of devices) {
    const rows: string[][] = []
    for (const { name, path, isSignedIn } of pages) {
      const both: { readonly cold: PageLoad; readonly warm: PageLoad }[] = []
      for (let round = 0; round < rounds; round++)
        both.push(
          await loadTwice(browser, { ...device, quietMs }, platform.url + path, async (page) => {
            if (isSignedIn) await signIn(page, platform)
          }),
        )
      rows.push(row(`${name}, cold`, leastOf(both.map(({ cold }) => cold))))
      rows.push(row(`${name}, warm`, leastOf(both.map(({ warm }) => warm))))
    }
    printTable(`Pages, ${device.name} (least of ${rounds})`, head, rows)
  }
}

const chosen = new Set(values.only.split(","))
printMachine("The first hour", codeInWords)
if (chosen.has("models") && modelsDir) await models()
if (chosen.has("walks") || chosen.has("pages")) {
  // without the starter's models, those of the tests, which have no weights
  const platform = await startPlatform({
    config: join(root, modelsDir ? "config/starter.yaml" : "config/test.yaml"),
    database: "embedded",
    env: modelsDir ? { RAKIT_MODELS: modelsDir } : {},
  })
  const browser = await openBrowser()
  try {
    if (chosen.has("walks")) await walks(browser, platform)
    if (chosen.has("pages")) await loads(browser, platform)
  } finally {
    await browser.close()
    await platform.close()
  }
}
printLoadAfter(startedMs)
