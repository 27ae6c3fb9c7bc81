import type {
  Billing,
  CallPath,
  Catalogue,
  Files,
  Identity,
  Ids,
  Metrics,
  Queue,
  Workers,
} from "../../../core/index.ts"
import type { RetrievalDeps } from "../deps.ts"
import type { DocumentReader } from "../reading/document-reader.ts"
import type { VectorStore } from "../vectors/vector-store.ts"

/** What the job of one file works with. */
export interface IngestDeps extends RetrievalDeps {
  readonly files: Files
  readonly queue: Queue
  readonly billing: Billing
  readonly identity: Identity
  readonly callPath: CallPath
  readonly catalogue: Catalogue
  readonly ids: Ids
  readonly metrics: Metrics
  readonly workers: Workers
  readonly reader: DocumentReader
  readonly vectors: VectorStore
}
