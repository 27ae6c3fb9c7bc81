import {
  callPathFixture,
  type FakeChatScript,
  fakeChatModel,
  fakeEmbedModel,
} from "../../../testing/index.ts"
import { chatEndpoint } from "./chat-endpoint.ts"

/** The endpoint over a fake chat model, called through the call path. */
export const openEndpoint = (script: FakeChatScript = { says: ["Halo", ", ", "dunia"] }) => {
  const model = fakeChatModel(script)
  const fixture = callPathFixture([model, fakeEmbedModel()])
  const endpoint = chatEndpoint(fixture)
  return {
    model,
    fixture,
    ask: (more: object) =>
      fixture.ask(endpoint, {
        model: "svc-lyt",
        messages: [{ role: "user", content: "Selamat pagi" }],
        ...more,
      }),
  }
}
