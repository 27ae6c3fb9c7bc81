import { Effect } from "effect"
import type { TranscribeEvent, TranscribeRequest } from "../../core/ports/audio.ts"
import type { LoadedModel } from "../../core/ports/model.ts"
import type { ModelEntry } from "../../core/services/model-entry.ts"
import { usageOf } from "../../core/usage.ts"
import { type FakeModel, fakeEntry } from "./catalogue.ts"
import { type FakePace, type FakeRun, type FakeStep, refused, runSteps } from "./model-run.ts"

export interface FakeTranscribeScript extends FakePace {
  readonly entry?: Partial<ModelEntry>
  /** What it hears, two seconds each; by default ` Halo`, ` dunia.` */
  readonly says?: readonly string[]
  /** Ends without its last event, as no model should. */
  readonly withoutEnd?: boolean
}

export interface FakeTranscribeModel extends FakeModel<"transcribe"> {
  readonly runs: readonly FakeRun<TranscribeRequest>[]
}

/** Hears the same in every file. A step for each text; the seconds are metered with the first. */
export const fakeTranscribeModel = (script: FakeTranscribeScript = {}): FakeTranscribeModel => {
  const { says = [" Halo", " dunia."], withoutEnd = false } = script
  const entry = fakeEntry("transcribe", script.entry)
  const runs: FakeRun<TranscribeRequest>[] = []
  const plan: LoadedModel<"transcribe">["task"]["plan"] = (request, context) =>
    Effect.gen(function* () {
      yield* refused(script)
      const usage = usageOf({ audioSeconds: request.seconds })
      const texts = says.map(
        (text, at): TranscribeEvent => ({
          type: "text",
          text,
          ...(request.segments && { span: { start: 2 * at, end: 2 * at + 2, avgLogprob: -0.25 } }),
        }),
      )
      const finish: TranscribeEvent = { type: "finish", language: request.language ?? "id" }
      const steps = [...texts, ...(withoutEnd ? [] : [finish])].map(
        (event): FakeStep<TranscribeEvent> => ({ events: [event], usage }),
      )
      return { bound: usage, run: runSteps(runs, entry.id, script, request, context, steps) }
    })
  return {
    entry,
    runs,
    loaded: {
      task: { plan },
      contextTokens: entry.contextTokens,
      modalities: ["text"],
      capabilities: [],
      adapters: [],
      servedBy: "fake",
    },
  }
}
