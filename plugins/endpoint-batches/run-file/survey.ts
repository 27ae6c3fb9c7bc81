import { Effect, Option, Stream } from "effect"
import type { CallPath, Catalogue, Endpoint, ModelId } from "../../../core/index.ts"
import { isBatchError, readInputLine } from "../input/input-line.ts"
import { jsonLines, type RawLine } from "../input/json-lines.ts"
import { CustomIds } from "../preflight/custom-ids.ts"
import { Faults } from "../preflight/faults.ts"
import { makeModelCheck } from "../preflight/model-check.ts"
import { sameId } from "../preflight/scan.ts"
import { fileBytes } from "./file-bytes.ts"
import { operator } from "./operator.ts"
import { type BatchFileRefused, refused } from "./refused.ts"

export interface SurveyDeps {
  readonly callPath: CallPath
  readonly catalogue: Catalogue
  /** The endpoints that a line may target, by path. */
  readonly targets: ReadonlyMap<string, Endpoint>
  readonly maxLineBytes: number
}

export interface Survey {
  readonly lines: number
  /** The models that the lines name, and the catalogue has. */
  readonly models: readonly ModelId[]
}

const urlOf = ({ text }: RawLine): string | undefined => {
  try {
    const { url } = JSON.parse(text ?? "") as { readonly url?: unknown }
    return typeof url === "string" ? url : undefined
  } catch {
    return undefined
  }
}

const emptyFile = (path: string) => refused(`${path} holds no line.`)

const unknownTarget = (url: string, targets: SurveyDeps["targets"]) =>
  refused(
    `'${url}' is no endpoint that takes batches here. There ${targets.size === 1 ? "is" : "are"}: ${[...targets.keys()].join(", ") || "none"}.`,
  )

/**
 * No line names an endpoint: fails with the other errors of the lines, as one that can't be read
 * names none.
 */
const withoutUrl = (
  { maxLineBytes }: Pick<SurveyDeps, "maxLineBytes">,
  path: string,
): Effect.Effect<never, BatchFileRefused> =>
  Effect.gen(function* () {
    const faults = new Faults()
    let lines = 0
    yield* Stream.runForEach(jsonLines(fileBytes(path), { maxLineBytes }), (raw) =>
      Effect.sync(() => {
        lines += 1
        const line = readInputLine(raw, "")
        if (isBatchError(line) && line.param !== "url") faults.add(line)
      }),
    )
    if (lines === 0) return yield* emptyFile(path)
    return yield* refused(
      `${path}: no line names an endpoint (url). Name it with --endpoint, as in --endpoint /v1/embeddings.`,
      faults.list(),
    )
  })

/** The given endpoint, or that of the first line that names one. */
export const targetOf = (
  { targets, maxLineBytes }: SurveyDeps,
  path: string,
  asked: string | undefined,
): Effect.Effect<Endpoint, BatchFileRefused> =>
  Effect.gen(function* () {
    const first =
      asked === undefined
        ? yield* jsonLines(fileBytes(path), { maxLineBytes }).pipe(
            Stream.map(urlOf),
            Stream.filter((url) => url !== undefined),
            Stream.runHead,
          )
        : Option.some(asked)
    if (Option.isNone(first)) return yield* withoutUrl({ maxLineBytes }, path)
    return targets.get(first.value) ?? (yield* unknownTarget(first.value, targets))
  })

/**
 * The pre-flight of a local file: reads every line once before the first one runs, and fails with
 * all errors.
 */
export const surveyFile = (
  deps: SurveyDeps,
  path: string,
  target: Endpoint,
  onLine: (customId: string, raw: RawLine) => void,
): Effect.Effect<Survey, BatchFileRefused> =>
  Effect.gen(function* () {
    const faults = new Faults()
    const ids = new CustomIds()
    const modelCheck = makeModelCheck(deps, target, operator, "pre-flight")
    const models = new Set<ModelId>()
    let lines = 0
    yield* Stream.runForEach(jsonLines(fileBytes(path), deps), (raw) =>
      Effect.suspend(() => {
        lines += 1
        const line = readInputLine(raw, target.path)
        if (isBatchError(line)) return Effect.sync(() => faults.add(line))
        const earlier = ids.add(line.customId, raw.line)
        onLine(line.customId, raw)
        const { model } = line.body as { readonly model?: unknown }
        const entry = typeof model === "string" ? deps.catalogue.entry(model) : undefined
        if (entry) models.add(entry.id)
        if (earlier !== undefined) return Effect.sync(() => faults.add(sameId(raw.line, earlier)))
        return Effect.asVoid(modelCheck.check(line.body, raw.line))
      }),
    )
    if (lines === 0) return yield* emptyFile(path)
    if (faults.count > 0) {
      for (const error of modelCheck.errors()) faults.add(error)
      return yield* refused(
        `${path}: ${faults.count === 1 ? "a line" : `${faults.count.toLocaleString("en")} lines`} can't run, so none was run.`,
        faults.list(),
      )
    }
    return { lines, models: [...models] }
  })
