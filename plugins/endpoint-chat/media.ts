import { Effect } from "effect"
import { type ApiError, apiError } from "../../core/errors.ts"
import type { Part } from "../../core/ports/model.ts"
import type { Catalogue } from "../../core/services/catalogue.ts"
import type { ModelEntry } from "../../core/services/model-entry.ts"
import { type PlacedImage, readImages } from "./images.ts"
import { isAddress } from "./media-source.ts"
import type { ChatBody } from "./request-schema.ts"
import { type PlacedSound, readSounds } from "./sounds.ts"
import { type PlacedVideo, readVideos, sourceOf, type VideoDeps } from "./videos.ts"

type Block = Exclude<NonNullable<ChatBody["messages"][number]["content"]>, string>[number]
type MediaBlock = Exclude<Block, { readonly type: "text" }>

/** What the blocks of a request are for the model. */
export type Media = ReadonlyMap<MediaBlock, readonly Part[]>

/** The media blocks of a request in their order, and their paths. */
interface Placed {
  readonly block: MediaBlock
  readonly param: string
}

const isImage = (placed: Placed): placed is PlacedImage & Placed =>
  placed.block.type === "image_url"
const isSound = (placed: Placed): placed is PlacedSound & Placed =>
  placed.block.type === "input_audio"
const isVideo = (placed: Placed): placed is PlacedVideo & Placed =>
  !isImage(placed) && !isSound(placed)

const kindOf = (placed: Placed) => (isImage(placed) ? "image" : isSound(placed) ? "audio" : "video")
const names = { image: "images", audio: "sounds", video: "videos" } as const

const contentOf = ({ content }: ChatBody["messages"][number]): readonly Block[] =>
  Array.isArray(content) ? (content as readonly Block[]) : []

export const mediaIn = ({ messages }: ChatBody): readonly Placed[] =>
  messages.flatMap((message, m) =>
    contentOf(message).flatMap((block, b) => {
      if (block.type === "text") return []
      const param = `messages[${m}].content[${b}]`
      return [{ block, param: block.type === "image_url" ? `${param}.image_url` : param }]
    }),
  )

/** Whether the model takes them says the catalogue: what it does not show has no price. */
export const refuseMedia = (
  catalogue: Catalogue,
  entry: ModelEntry,
  placed: readonly Placed[],
): Effect.Effect<void, ApiError> => {
  const { modalities } = catalogue.served(entry)
  const first = placed.find((one) => !modalities.includes(kindOf(one)))
  if (!first) return Effect.void
  const { param } = first
  const taken = modalities.length > 1 ? `${modalities.join(" and ")} only` : "text only"
  const message = `${param}: the model '${entry.id}' takes ${taken}, not ${names[kindOf(first)]}.`
  return Effect.fail(apiError("unsupported_parameter", message, { param }))
}

/** Whether a part is at an address, and not in the request. */
export const isFetched = (placed: Placed): boolean => {
  if (isImage(placed)) return isAddress(placed.block.image_url.url)
  return isVideo(placed) && isAddress(sourceOf(placed.block).url ?? "")
}

/** Reads the media of a request. Fails with 400 and the path of the first that is wrong. */
export const readMedia = Effect.fnUntracedEager(function* (
  deps: VideoDeps,
  placed: readonly Placed[],
) {
  const images = yield* readImages(deps.outbound, placed.filter(isImage))
  const videos = yield* readVideos(deps, placed.filter(isVideo))
  const sounds = yield* readSounds(placed.filter(isSound))
  const media = new Map<MediaBlock, readonly Part[]>(videos)
  for (const [block, part] of [...images, ...sounds]) media.set(block, [part])
  return media
})

const partsIn = (media: Media, counts: (block: MediaBlock) => boolean): number =>
  [...media].reduce((sum, [block, parts]) => sum + (counts(block) ? parts.length : 0), 0)

const isVideoBlock = ({ type }: MediaBlock) => type === "video_url" || type === "input_video"

/** How many frames of videos there are. */
export const framesIn = (media: Media): number => partsIn(media, isVideoBlock)

/** Images and frames: what a price for an image counts. */
export const picturesIn = (media: Media): number =>
  partsIn(media, ({ type }) => type !== "input_audio")

export const soundsIn = (media: Media): number =>
  partsIn(media, ({ type }) => type === "input_audio")

/** The path of a block, where a model has named the part of a message that it became. */
export const withBlockPath = (body: ChatBody, media: Media, error: ApiError): ApiError => {
  const [, m, p, rest] = /^messages\[(\d+)\]\.content\[(\d+)\](.*)$/.exec(error.param ?? "") ?? []
  if (m === undefined || framesIn(media) === 0) return error
  let parts = 0
  for (const [b, block] of contentOf(body.messages[Number(m)]!).entries()) {
    parts += block.type === "text" ? 1 : (media.get(block)?.length ?? 0)
    if (parts <= Number(p)) continue
    const own = isVideoBlock(block as MediaBlock) ? "" : rest
    const { code, message, status, retryAfterMs } = error
    return apiError(code, message, {
      param: `messages[${m}].content[${b}]${own}`,
      status,
      retryAfterMs,
    })
  }
  return error
}
