import type { FilePurpose } from "../../../core/index.ts"
import { extensionOf } from "./file-name.ts"

/** RFC 8187: what `encodeURIComponent` leaves, but `attr-char` does not have, is encoded too. */
const extended = (name: string): string =>
  encodeURIComponent(name).replace(
    /['()*!]/g,
    (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`,
  )

/** Always a download, never shown in place. `filename` is for clients that don't know `filename*` (RFC 6266). */
export const attachment = (name: string): string =>
  `attachment; filename="${name.replace(/[^A-Za-z0-9 ._-]/g, "_")}"; filename*=UTF-8''${extended(name)}`

const byExtension = new Map([
  ["pdf", "application/pdf"],
  ["txt", "text/plain; charset=utf-8"],
  ["md", "text/markdown; charset=utf-8"],
])

export const mediaTypeOf = (purpose: FilePurpose, name: string): string =>
  purpose === "knowledge"
    ? (byExtension.get(extensionOf(name)) ?? "application/octet-stream")
    : "application/jsonl"
