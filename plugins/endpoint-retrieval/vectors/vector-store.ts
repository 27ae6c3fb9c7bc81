import type { Effect } from "effect"
import type { PortError, Tenant, Transaction } from "../../../core/index.ts"
import type { VectorSpace } from "./space.ts"

export type { VectorSpace }

/** A part of a document: its chunks `from` to `to`, both inclusive; absent: all of them. */
export interface ChunkRange {
  readonly document: bigint
  readonly from?: number
  readonly to?: number
}

export interface VectorQuery {
  readonly tenant: Tenant
  readonly space: VectorSpace
  /** As long as those of the model. */
  readonly vector: Float32Array
  /** The largest number of hits. */
  readonly limit: number
  /** Absent: every ready document of the tenant in this space. */
  readonly ranges?: readonly ChunkRange[]
}

export interface VectorHit {
  readonly document: bigint
  readonly index: number
  /** Cosine, -1 to 1. */
  readonly score: number
}

/**
 * The vectors of chunks. Searches only documents that are `ready`, unexpired and of the tenant,
 * whatever `ranges` name.
 */
export interface VectorStore {
  /** `exact scan`, `pgvector exact`, `pgvector hnsw`. */
  readonly name: string
  /** Keeps the vectors of the chunks from `from` on, in place of earlier ones. */
  put(
    document: bigint,
    space: VectorSpace,
    from: number,
    vectors: readonly Float32Array[],
    tx: Transaction,
  ): Effect.Effect<void, PortError>
  /** The chunks of the document that have no vector in the space, in order. */
  missing(
    document: bigint,
    space: VectorSpace,
    limit: number,
  ): Effect.Effect<readonly number[], PortError>
  /** Best first; equal scores by document and index. */
  search(query: VectorQuery): Effect.Effect<readonly VectorHit[], PortError>
  /** Deletes a document's vectors, but those in the space `except`. */
  remove(document: bigint, tx: Transaction, except?: VectorSpace): Effect.Effect<void, PortError>
}
