import type { Catalogue, Files } from "../../../core/index.ts"
import type { RetrievalDeps } from "../deps.ts"
import type { VectorStore } from "../vectors/vector-store.ts"

/** What queries work with. */
export interface SearchDeps extends RetrievalDeps {
  readonly catalogue: Catalogue
  readonly files: Pick<Files, "find">
  readonly vectors: VectorStore
}
