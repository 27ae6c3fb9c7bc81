import { loadThread } from "../load-thread.mjs"

await loadThread("grammar/grammar-thread")
