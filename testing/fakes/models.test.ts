import { Effect, Stream } from "effect"
import { expect, it } from "vitest"
import { apiError } from "../../core/errors.ts"
import { recordCall } from "../contracts/model/fixture.ts"
import {
  chatModelContract,
  embedModelContract,
  imageModelContract,
  rerankModelContract,
  transcribeModelContract,
} from "../contracts/model.ts"
import { fakeChatModel } from "./chat-model.ts"
import { fakeEmbedModel } from "./embed-model.ts"
import { fakeImageModel } from "./image-model.ts"
import { fakeRerankModel } from "./rerank-model.ts"
import { fakeTranscribeModel } from "./transcribe-model.ts"

chatModelContract("the fake", async () => {
  const { entry, loaded } = fakeChatModel({
    says: Array.from({ length: 100 }, (_, i) => `${i === 0 ? "" : " "}wave${i}`),
  })
  return { id: entry.id, loaded }
})

embedModelContract("the fake", async () => {
  const { entry, loaded } = fakeEmbedModel()
  return { id: entry.id, loaded }
})

rerankModelContract("the fake", async () => {
  const { entry, loaded } = fakeRerankModel()
  return { id: entry.id, loaded }
})

imageModelContract("the fake", async () => {
  const { entry, loaded } = fakeImageModel()
  return { id: entry.id, loaded }
})

transcribeModelContract("the fake", async () => {
  const { entry, loaded } = fakeTranscribeModel()
  return { id: entry.id, loaded }
})

imageModelContract("the fake that edits nothing", async () => {
  const { entry, loaded } = fakeImageModel({ edits: false })
  return { id: entry.id, loaded }
})

it("a fake writes down how each of its runs ended", async () => {
  const model = fakeChatModel({
    says: ["a", "b", "c"],
    before: (step) => (step === 2 ? Effect.fail(apiError("backend_error")) : Effect.void),
  })
  const request = {
    messages: [],
    sampling: { temperature: 0, topP: 1, frequencyPenalty: 0, presencePenalty: 0 },
    maxTokens: 8,
    stop: [],
  }
  const plan = () =>
    Effect.runPromise(model.loaded.task.plan(request, recordCall(model.entry.id).context))
  const [one, two] = [await plan(), await plan()]
  expect(model.runs).toEqual([])
  await Effect.runPromiseExit(Stream.runDrain(one.run))
  await Effect.runPromise(Stream.runDrain(Stream.take(two.run, 1)))
  expect(model.runs.map(({ state, steps }) => [state, steps])).toEqual([
    ["failed", 2],
    ["cancelled", 2],
  ])
})
