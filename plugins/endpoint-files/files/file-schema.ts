import { Schema } from "effect"
import { fileField, listSchema } from "../../../core/index.ts"
import type { FileRow } from "../tables.ts"
import { Metadata, metadataLimits } from "./metadata.ts"

export const purposes = ["batch_input", "knowledge", "batch_output", "batch_error"] as const

const UnixSeconds = Schema.Int.annotate({ description: "Unix seconds." })

/** What becomes of a knowledge file; its counts stay when it is processed. */
const Progress = Schema.Struct({
  stage: Schema.optionalKey(Schema.Literals(["extracting", "embedding"])),
  pages: Schema.optionalKey(Schema.Int),
  chunks: Schema.optionalKey(Schema.Int),
  chunks_embedded: Schema.optionalKey(Schema.Int),
  tokens: Schema.optionalKey(Schema.Int),
  code: Schema.optionalKey(
    Schema.String.annotate({ description: "Why it failed, for programs: `encrypted`, `no_text`." }),
  ),
}).annotate({ identifier: "FileProgress" })

export const FileReply = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("file"),
  bytes: Schema.Int,
  created_at: UnixSeconds,
  expires_at: UnixSeconds,
  filename: Schema.String,
  purpose: Schema.Literals(purposes),
  status: Schema.Literals(["uploaded", "processing", "processed", "failed"]),
  status_details: Schema.optionalKey(
    Schema.String.annotate({ description: "Why it failed, for people." }),
  ),
  progress: Schema.optionalKey(Progress),
  metadata: Schema.optionalKey(Metadata),
}).annotate({ identifier: "File" })

/** The form of an upload; files/form.ts reads it while it arrives. */
export const FileForm = Schema.Struct({
  file: fileField,
  purpose: Schema.Literals(["batch_input", "batch", "knowledge"]),
  "expires_after[anchor]": Schema.optionalKey(
    Schema.Literal("created_at").annotate({ description: "Beside `expires_after[seconds]`." }),
  ),
  "expires_after[seconds]": Schema.optionalKey(Schema.Int),
  metadata: Schema.optionalKey(
    Metadata.annotate({ description: `For filters; also as metadata[key]. ${metadataLimits}` }),
  ),
}).annotate({ identifier: "FileForm" })

export const DeletedFile = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("file"),
  deleted: Schema.Literal(true),
  status: Schema.Literal("deleted"),
}).annotate({
  identifier: "DeletedFile",
})

export const FileList = listSchema(FileReply, "FileList")

export const seconds = (at: Date): number => Math.floor(at.getTime() / 1000)

export const toFile = (row: FileRow) => ({
  id: row.id,
  object: "file" as const,
  bytes: Number(row.bytes),
  created_at: seconds(row.created_at),
  expires_at: seconds(row.expires_at),
  filename: row.filename,
  purpose: row.purpose,
  status: row.status,
  ...(row.status_details !== null && { status_details: row.status_details }),
  ...(row.progress !== null && { progress: row.progress as typeof Progress.Type }),
  ...(Object.keys(row.metadata).length > 0 && { metadata: row.metadata }),
})
