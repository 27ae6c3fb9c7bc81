import { loadThread } from "./load-thread.mjs"

export const { startOnDevice } = await loadThread("worker/entry")
