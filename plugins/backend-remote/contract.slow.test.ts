import { afterAll, beforeAll } from "vitest"
import type { TaskName } from "../../core/ports/model.ts"
import {
  chatModelContract,
  embedModelContract,
  imageModelContract,
  type OpenedModel,
  rerankModelContract,
} from "../../testing/contracts/model.ts"
import { openRemote } from "./testing/open-remote.ts"
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
