import type { RerankEvent } from "../../core/ports/model.ts"
import type { RerankBody, RerankReply } from "./schema.ts"

/** Best first; equal scores in the order of the documents. At most `top_n`. */
export const rank = (events: readonly RerankEvent[], body: RerankBody): RerankReply["results"] =>
  [...events]
    .sort((a, b) => b.score - a.score || a.index - b.index)
    .slice(0, body.top_n ?? events.length)
    .map(({ index, score }) => ({
      index,
      relevance_score: score,
      ...(body.return_documents === true && { document: { text: body.documents[index] ?? "" } }),
    }))
