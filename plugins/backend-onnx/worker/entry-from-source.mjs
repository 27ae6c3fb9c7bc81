import { loadThread } from "./load-thread.mjs"

await loadThread("worker/entry")
