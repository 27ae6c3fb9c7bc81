import type { CallInput } from "../../../core/call/contract.ts"
import type { ImageSafety } from "../../../core/ports/image.ts"
import { makeMetrics } from "../../../runtime/services/metrics.ts"
import {
  callPathFixture,
  type FakeImageScript,
  fakeChatModel,
  fakeImageModel,
} from "../../../testing/index.ts"
import { makeImageEndpoints } from "../endpoint.ts"

/** Both endpoints over a fake model, called through the call path, as often as a test likes. */
export const openEndpoints = (script: FakeImageScript = {}, safety?: ImageSafety) => {
  const model = fakeImageModel(script)
  const fixture = callPathFixture([model, fakeChatModel()], 10n ** 15n)
  const metrics = makeMetrics()
  const [generations, edits] = makeImageEndpoints({ ...fixture, metrics, safety: () => safety })
  const limits = { ...fixture.caller.limits, rpm: 1e9, rpd: 1e9 }
  const caller = { ...fixture.caller, limits: { ...limits, monthlyCapMicros: 0n } }
  const asked =
    (endpoint: typeof generations) =>
    (more: object, input: Partial<CallInput> = {}) =>
      fixture.ask(
        endpoint!,
        { model: "svc-iris", prompt: "Sebuah apel", ...more },
        { caller, ...input },
      )
  return {
    model,
    fixture,
    metrics,
    generations: generations!,
    edits: edits!,
    generate: asked(generations),
    edit: asked(edits),
    lastRequest: () => model.runs.at(-1)?.request,
  }
}
