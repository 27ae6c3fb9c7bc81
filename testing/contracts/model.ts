/**
 * What every model must do, whatever backend serves it. A test imports the suite of its task; they
 * need vitest.
 */
export { chatModelContract } from "./model/chat.ts"
export { embedModelContract } from "./model/embed.ts"
export {
  type OpenedModel,
  type RecordedCall,
  recordCall,
  refusalOf,
  runWhole,
} from "./model/fixture.ts"
export { imageModelContract } from "./model/image.ts"
export { rerankModelContract } from "./model/rerank.ts"
export { transcribeModelContract } from "./model/transcribe.ts"
