import { useText } from "../app.js"
import { html } from "../html.js"

/** What a file input offers, by what a model takes. */
const types = {
  image: "image/png,image/jpeg,image/webp,image/gif",
  audio: "audio/wav,audio/x-wav,audio/mpeg",
  video: "video/mp4,video/webm,video/quicktime",
}

export const acceptedBy = ({ modalities = [] } = {}) =>
  Object.entries(types)
    .filter(([kind]) => modalities.includes(kind))
    .map(([, list]) => list)
    .join(",")

export const dataUriOf = (file) =>
  new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(reader.result)
    reader.onerror = () => reject(reader.error)
    reader.readAsDataURL(file)
  })

/** The block of a message that a file is. */
const blockOf = async (file) => {
  const url = await dataUriOf(file)
  if (file.type.startsWith("image/")) return { type: "image_url", image_url: { url } }
  if (file.type.startsWith("video/")) return { type: "video_url", video_url: { url } }
  const format = file.type === "audio/mpeg" ? "mp3" : "wav"
  return { type: "input_audio", input_audio: { data: url.slice(url.indexOf(",") + 1), format } }
}

/** Reads the files of an input: `{ name, block, preview? }`; a preview is an address of this page. */
export const attachmentsOf = (files) =>
  Promise.all(
    [...files].map(async (file) => ({
      name: file.name,
      block: await blockOf(file),
      ...(file.type.startsWith("image/") && { preview: URL.createObjectURL(file) }),
    })),
  )

export const forget = (messages) => {
  for (const { files = [] } of messages)
    for (const { preview } of files) if (preview) URL.revokeObjectURL(preview)
}

export const Attachments = ({ files = [] }) => {
  const { t } = useText()
  if (files.length === 0) return null
  return html`<ul class="attachments" aria-label=${t("play.files")}>
    ${files.map(({ name, preview }, index) => html`<li key=${index}>${preview ? html`<img src=${preview} alt=${name} />` : html`<span class="quiet">${name}</span>`}</li>`)}
  </ul>`
}
