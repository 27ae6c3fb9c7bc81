import type { Generated, Selectable } from "kysely"
import type { Json, Tenant } from "../../core/index.ts"

interface Owned {
  readonly account: string
  readonly mode: Tenant["mode"]
}

/**
 * The index of one knowledge file. States: waiting -> extracting -> embedding -> ready | failed;
 * any -> removed, whose rows are swept. `epoch` is a fencing token: every claim adds 1, and what
 * was claimed before writes nothing any more.
 */
export interface DocumentTable extends Owned {
  readonly no: Generated<bigint>
  readonly file_id: string
  readonly key_id: string | null
  readonly state: "waiting" | "extracting" | "embedding" | "ready" | "failed" | "removed"
  readonly epoch: number
  /** Runs that broke off for a reason that may lie in the file. */
  readonly failures: number
  readonly metadata: Json
  readonly pages: number | null
  /** Characters (code points) of the extracted text. */
  readonly characters: bigint
  readonly chunks: number
  readonly embedded: number
  /** What is paid for: counted by the embedding model, over all chunks. */
  readonly tokens: bigint
  /** What ingest cost; 0 before it is `ready`. */
  readonly cost_micros: bigint
  /** Where its vectors are, or are being put; null before the first one. */
  readonly space: string | null
  readonly dimensions: number | null
  readonly created_at: Date
  /** When the file does. */
  readonly expires_at: Date
  readonly removed_at: Date | null
}

/** Its version counts the changes of what is searched, so that caches know that they are old. */
export interface TenantTable extends Owned {
  readonly no: Generated<bigint>
  readonly version: bigint
}

export interface ChunkTable {
  readonly document_no: bigint
  readonly idx: number
  /** The page it begins on, from 1 on; null in formats without pages. */
  readonly page: number | null
  /** Characters (code points) of the extracted text, the end exclusive. */
  readonly start_at: number
  readonly end_at: number
  readonly text: string
  /** `wordsOfChunk`: lexemes of the text, and one that names the tenant. */
  readonly words: string
}

/** Without pgvector. */
export interface VectorTable {
  readonly document_no: bigint
  readonly idx: number
  readonly space: string
  /** Half floats, little-endian, of Euclidean norm 1. */
  readonly vector: Buffer
}

export interface RetrievalTables {
  readonly retrieval_document: DocumentTable
  readonly retrieval_tenant: TenantTable
  readonly retrieval_chunk: ChunkTable
  readonly retrieval_vector: VectorTable
}

export type DocumentRow = Selectable<DocumentTable>
export type ChunkRow = Selectable<ChunkTable>
