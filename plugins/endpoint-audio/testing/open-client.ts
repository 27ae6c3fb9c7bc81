import OpenAI from "openai"
import {
  goodKey,
  type HttpFixture,
  openHttpFixture,
} from "../../../runtime/http/testing/fixture.ts"
import {
  type FakeTranscribeModel,
  type FakeTranscribeScript,
  fakeTranscribeModel,
} from "../../../testing/index.ts"
import { makeTranscriptionEndpoint } from "../endpoint.ts"

export interface ClientFixture {
  readonly client: OpenAI
  readonly model: FakeTranscribeModel
  readonly deps: HttpFixture
}

/** The official client over real HTTP, against a fake model. */
export const openClient = async (script: FakeTranscribeScript = {}): Promise<ClientFixture> => {
  const model = fakeTranscribeModel(script)
  const deps = await openHttpFixture({ models: [model.entry], until: "listening" })
  const { catalogue } = deps
  catalogue.set(model.entry.id, { state: "ready", loaded: model.loaded })
  deps.server.publish([makeTranscriptionEndpoint({ catalogue, maxSeconds: 60 })])
  deps.server.ready()
  const client = new OpenAI({ baseURL: `${deps.url}/v1`, apiKey: goodKey, maxRetries: 0 })
  return { client, model, deps }
}
