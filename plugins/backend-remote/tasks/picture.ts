import { Effect } from "effect"
import type { ImageRequest } from "../../../core/ports/model.ts"
import type { Outbound } from "../../../core/services/outbound.ts"
import { failure, type UpstreamFailure } from "../upstream/failure.ts"
import { fieldsOf } from "./json-task.ts"

/** A PNG file has at most so many bytes. */
export const maxPictureBytes = 64 * 2 ** 20

const signature = "\x89PNG\r\n\x1a\n"
const trailer = Buffer.from("IEND")
const headerBytes = 33
/** The trailer with its length and check sum. */
const trailerBytes = 12

const formats: readonly (readonly [string, string])[] = [
  ["\xff\xd8\xff", "a JPEG"],
  ["RIFF", "a WebP"],
  ["GIF8", "a GIF"],
]

/** Throws an `UpstreamFailure` where a file is no whole PNG, or has not the size that was asked. */
export const checkPicture = (
  bytes: Buffer,
  asked?: Pick<ImageRequest, "width" | "height">,
): Buffer => {
  const head = bytes.toString("latin1", 0, 8)
  if (head !== signature || bytes.length < headerBytes + trailerBytes) {
    const known = formats.find(([start]) => head.startsWith(start))?.[1] ?? "something else"
    throw failure("garbled", `its picture is no PNG, but ${known}`)
  }
  if (!bytes.subarray(-8, -4).equals(trailer)) throw failure("garbled", "its picture is cut")
  const [width, height] = [bytes.readUInt32BE(16), bytes.readUInt32BE(20)]
  if (asked && (width !== asked.width || height !== asked.height))
    throw failure(
      "garbled",
      `its picture has ${width}x${height} pixels, not ${asked.width}x${asked.height}`,
    )
  return bytes
}

const base64 = /^[A-Za-z0-9+/]+={0,2}$/

export const decodePicture = (text: string): Buffer => {
  const plain = text.replace(/^data:image\/[a-z+.-]+;base64,/, "")
  if (!base64.test(plain)) throw failure("garbled", "its picture is not in base64")
  return Buffer.from(plain, "base64")
}

/** Fetches a picture from an address that an upstream named, as one that a customer named. */
const fetchPicture = (outbound: Outbound, url: string, timeoutMs: number) =>
  outbound
    .send({ method: "GET", url, timeoutMs: Math.max(1, timeoutMs), maxBytes: maxPictureBytes })
    .pipe(
      Effect.mapError(({ _tag, message }) =>
        _tag === "OutboundRefused"
          ? failure("misplaced", `its picture's address is refused: ${message}`)
          : failure("unavailable", `its picture can't be fetched: ${message}`),
      ),
      Effect.flatMap(({ status, body, truncated }) => {
        if (status !== 200)
          return Effect.fail(failure("unavailable", `its picture's address says ${status}`))
        return truncated
          ? Effect.fail(failure("garbled", `its picture has more than ${maxPictureBytes} bytes`))
          : Effect.succeed(Buffer.from(body))
      }),
    )

/** The picture of a whole answer, from its bytes or its address. */
export const pictureIn = (
  answer: unknown,
  request: ImageRequest,
  outbound: Outbound,
  timeoutMs: number,
): Effect.Effect<Buffer, UpstreamFailure> =>
  Effect.gen(function* () {
    const { data } = fieldsOf(answer)
    const [first] = Array.isArray(data) ? (data as readonly unknown[]) : []
    const { b64_json, url } = fieldsOf(first)
    const isHere = typeof b64_json === "string" && b64_json !== ""
    if (!isHere && typeof url !== "string") return yield* failure("garbled", "it sent no picture")
    const bytes = isHere
      ? yield* checked(() => decodePicture(b64_json))
      : yield* fetchPicture(outbound, url as string, timeoutMs)
    return yield* checked(() => checkPicture(bytes, request))
  })

const checked = (check: () => Buffer) =>
  Effect.try({ try: check, catch: (cause) => cause as UpstreamFailure })
