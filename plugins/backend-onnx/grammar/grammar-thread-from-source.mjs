// Node 20 can't load TypeScript as the entry of a thread: when we run from source, this registers the loader first.
import { register } from "tsx/esm/api"

register()
await import("./grammar-thread.ts")
