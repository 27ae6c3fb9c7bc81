import { loadThread } from "../worker/load-thread.mjs"

await loadThread("grammar/grammar-thread")
