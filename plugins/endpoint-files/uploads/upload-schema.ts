import { Schema } from "effect"
import { atMostCharacters, optional } from "../../../core/index.ts"
import { ExpiresAfter } from "../files/expires-after.ts"
import { FileReply, seconds, toFile } from "../files/file-schema.ts"
import { Metadata, metadataLimits } from "../files/metadata.ts"
import type { FileRow, PartRow, UploadRow } from "../tables.ts"

export const maxParts = 1_000

const text = (characters: number) => Schema.String.check(atMostCharacters(characters))

export const CreateUpload = Schema.Struct({
  // longer than a file name, as folders are cut off; the name itself is checked later
  filename: text(4096),
  purpose: text(100),
  bytes: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
  mime_type: text(255),
  expires_after: optional(ExpiresAfter),
  metadata: optional(Metadata).annotate({ description: `Of the file. ${metadataLimits}` }),
}).annotate({
  identifier: "CreateUpload",
  examples: [
    { filename: "lines.jsonl", purpose: "batch", bytes: 1_000_000, mime_type: "application/jsonl" },
  ],
})
export type CreateUpload = typeof CreateUpload.Type

export const CompleteUpload = Schema.Struct({
  part_ids: Schema.Array(text(100)).check(
    Schema.isMinLength(1, { message: "is empty" }),
    Schema.isMaxLength(maxParts, { message: `has more than ${maxParts} parts` }),
  ),
  md5: optional(
    Schema.String.check(
      Schema.makeFilter((hash) => /^[0-9a-f]{32}$/i.test(hash) || "must be 32 hexadecimal digits"),
    ),
  ),
}).annotate({ identifier: "CompleteUpload" })
export type CompleteUpload = typeof CompleteUpload.Type

export const UploadReply = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("upload"),
  bytes: Schema.Int,
  created_at: Schema.Int,
  expires_at: Schema.Int,
  filename: Schema.String,
  purpose: Schema.Literals(["batch_input", "knowledge"]),
  status: Schema.Literals(["pending", "completed", "cancelled", "expired"]),
  file: Schema.NullOr(FileReply),
}).annotate({ identifier: "Upload" })

export const PartReply = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("upload.part"),
  bytes: Schema.Int,
  created_at: Schema.Int,
  upload_id: Schema.String,
}).annotate({ identifier: "UploadPart" })

export const toUpload = (row: UploadRow, status: UploadRow["status"], file?: FileRow) => ({
  id: row.id,
  object: "upload" as const,
  bytes: Number(row.bytes),
  created_at: seconds(row.created_at),
  expires_at: seconds(row.expires_at),
  filename: row.filename,
  purpose: row.purpose,
  status,
  file: file ? toFile(file) : null,
})

export const toPart = ({ id, upload_id, bytes, created_at }: PartRow) => ({
  id,
  object: "upload.part" as const,
  bytes: Number(bytes),
  created_at: seconds(created_at),
  upload_id,
})
