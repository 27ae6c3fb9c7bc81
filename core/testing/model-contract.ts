/** What every model must do, whatever backend serves it. Import the suite of its task; they need vitest. */
export { chatModelContract } from "./model-contract/chat.ts"
export { embedModelContract } from "./model-contract/embed.ts"
export { rerankModelContract } from "./model-contract/rerank.ts"
export type { ModelWorld } from "./model-contract/world.ts"
