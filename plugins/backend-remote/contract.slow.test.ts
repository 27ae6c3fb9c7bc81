import { Effect, Stream } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import type { ApiError } from "../../core/errors.ts"
import type { TaskName } from "../../core/ports/model.ts"
import {
  chatModelContract,
  embedModelContract,
  imageModelContract,
  type OpenedModel,
  rerankModelContract,
  transcribeModelContract,
} from "../../testing/contracts/model.ts"
import { contextOf, openRemote } from "./testing/open-remote.ts"
import { openRakitUpstream } from "./testing/rakit-upstream.ts"

/** The model port's contract, with another Rakit as the upstream. */
let rakit: Awaited<ReturnType<typeof openRakitUpstream>>
beforeAll(async () => {
  rakit = await openRakitUpstream()
}, 120_000)
afterAll(() => rakit?.close())

const opened =
  <T extends TaskName>(task: T) =>
  async (): Promise<OpenedModel<T>> => {
    const remote = openRemote()
    const { url, key } = rakit
    const upstreams = [{ url, key, model: task, kind: "rakit" }]
    const loaded = await remote.open(task, { upstreams }, 1024)
    return { id: "m", loaded, close: remote.close }
  }

chatModelContract("a chat model of another Rakit", opened("chat"))
embedModelContract("an embedding model of another Rakit", opened("embed"))
rerankModelContract("a rerank model of another Rakit", opened("rerank"))
imageModelContract("an image model of another Rakit", opened("image"))
transcribeModelContract("a transcription model of another Rakit", opened("transcribe"))

it.each(["embed", "rerank"] as const)(
  "an own count agrees with another Rakit's: %s",
  async (task) => {
    const remote = openRemote()
    const upstreams = [{ url: rakit.url, key: rakit.key, model: task, kind: "rakit" }]
    const options = { upstreams, tokenizer: rakit.filesOf(task) }
    const texts = [
      "The sea is wide.",
      "Laut itu luas, dan dalam sekali.",
      "海は広い",
      "a".repeat(500),
    ]
    const call = contextOf()
    const planned: Effect.Effect<{ readonly run: Stream.Stream<unknown, ApiError> }, ApiError> =
      task === "embed"
        ? (await remote.open("embed", options, 1024)).task.plan(
            { items: texts.map((text) => ({ type: "text", text })), truncate: "END" },
            call.context,
          )
        : (await remote.open("rerank", options, 1024)).task.plan(
            { query: "How wide is the sea?", documents: texts },
            call.context,
          )
    await Effect.runPromise(Effect.flatMap(planned, ({ run }) => Stream.runDrain(run)))
    expect(call.used().inputTokens).toBeGreaterThan(20)
    expect(remote.counted("rakit_upstream_usage_corrected_total")).toBe(0)
    await remote.close()
  },
)
