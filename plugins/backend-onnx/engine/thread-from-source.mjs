import { loadThread } from "../load-thread.mjs"

await loadThread("engine/engine-thread")
