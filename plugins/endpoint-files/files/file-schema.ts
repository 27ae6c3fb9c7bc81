import { Schema } from "effect"
import { fileField, listSchema } from "../../../core/index.ts"
import type { FileRow } from "../tables.ts"

export const purposes = ["batch_input", "knowledge", "batch_output", "batch_error"] as const

const UnixSeconds = Schema.Int.annotate({ description: "Unix seconds." })

export const FileReply = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("file"),
  bytes: Schema.Int,
  created_at: UnixSeconds,
  expires_at: UnixSeconds,
  filename: Schema.String,
  purpose: Schema.Literals(purposes),
  status: Schema.Literals(["uploaded", "processing", "processed", "failed"]),
  status_details: Schema.optionalKey(Schema.String),
}).annotate({ identifier: "File" })

/** The form of an upload; files/form.ts reads it while it arrives. */
export const FileForm = Schema.Struct({
  file: fileField,
  purpose: Schema.Literals(["batch_input", "batch", "knowledge"]),
  "expires_after[anchor]": Schema.optionalKey(
    Schema.Literal("created_at").annotate({ description: "Beside `expires_after[seconds]`." }),
  ),
  "expires_after[seconds]": Schema.optionalKey(Schema.Int),
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
})
