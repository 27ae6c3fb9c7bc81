import type { Audit, AuditedPart } from "./audit.ts"
import { k } from "./audit.ts"

const leastRecall = 0.95

/** 1 where there is nothing to find. */
const recallOf = ({ exact, found }: AuditedPart): number => (exact > 0 ? found / exact : 1)

const isSound = (part: AuditedPart): boolean =>
  part.chunksWithoutVectors === 0 &&
  part.vectorsWithoutChunks === 0 &&
  part.foreign === 0 &&
  recallOf(part) >= leastRecall

export const isSoundAudit = ({ parts, orphans }: Audit): boolean =>
  orphans === 0 && parts.every(isSound)

export const auditJson = (audit: Audit): string =>
  `${JSON.stringify({
    sound: isSoundAudit(audit),
    index: audit.index,
    k,
    vectors_without_document: audit.orphans,
    accounts: audit.parts.map((part) => ({
      account: part.tenant.account,
      mode: part.tenant.mode,
      space: part.space.id,
      dimensions: part.space.dimensions,
      documents: part.documents,
      chunks: part.chunks,
      chunks_without_vectors: part.chunksWithoutVectors,
      vectors_without_chunks: part.vectorsWithoutChunks,
      queries: part.queries,
      recall: part.exact > 0 ? recallOf(part) : null,
      foreign_hits: part.foreign,
      changing: part.changing,
    })),
  })}\n`

const count = (number: number, what: string): string =>
  `${number.toLocaleString("en-US")} ${what}${number === 1 ? "" : "s"}`

const faultsOf = (part: AuditedPart): readonly string[] => [
  ...(part.chunksWithoutVectors > 0
    ? [`${count(part.chunksWithoutVectors, "chunk")} without a vector`]
    : []),
  ...(part.vectorsWithoutChunks > 0
    ? [`${count(part.vectorsWithoutChunks, "vector")} without a chunk`]
    : []),
  ...(part.foreign > 0 ? [`${count(part.foreign, "hit")} that are not the account's own`] : []),
]

const partText = (part: AuditedPart): string => {
  const { tenant, space, documents, chunks, queries, exact } = part
  const recall =
    exact > 0
      ? `recall@${k} ${recallOf(part).toFixed(4)}, ${count(queries, "query").replace("querys", "queries")}`
      : "nothing to compare"
  return [
    `${isSound(part) ? "ok   " : "FOUND"} ${tenant.account} (${tenant.mode}), ${space.id}: ${count(documents, "document")}, ${count(chunks, "chunk")}; ${recall}\n`,
    ...faultsOf(part).map((fault) => `        ${fault}\n`),
    ...(part.changing ? ["        documents changed while it was compared: run it again\n"] : []),
  ].join("")
}

export const auditText = (audit: Audit): string => {
  const { index, parts, orphans } = audit
  if (parts.length === 0 && orphans === 0) return "No document is ready, so nothing is searched.\n"
  return [
    `The index: ${index}\n`,
    ...parts.map(partText),
    ...(orphans > 0 ? [`FOUND ${count(orphans, "vector")} of documents that do not exist\n`] : []),
    isSoundAudit(audit)
      ? "The index is complete.\n"
      : "Something is missing. Fix: rakit fsck --repair; a recall below 0.95 is what hnsw costs here, exact has none of it.\n",
  ].join("")
}
