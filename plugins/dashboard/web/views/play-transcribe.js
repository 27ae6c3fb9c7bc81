import { useRef, useState } from "preact/hooks"
import { useText } from "../app.js"
import { clock, count } from "../format.js"
import { html } from "../html.js"
import { Field, Submit } from "../parts/field.js"
import { Form } from "../parts/form.js"
import { Table } from "../parts/table.js"
import { transcriptionCode, transcriptionFields } from "../play-request.js"
import { acceptedBy } from "./attachments.js"
import { apiBase, Code, ModelField, Paid, useAnswer, useCall } from "./play-parts.js"

/** The field of the file, which takes one that is dropped anywhere around it. */
const AudioField = () => {
  const { t } = useText()
  const around = useRef()
  const [isOver, setOver] = useState(false)
  const take = (event) => {
    event.preventDefault()
    setOver(false)
    const [file] = event.dataTransfer.files
    if (!file) return
    const one = new DataTransfer()
    one.items.add(file)
    around.current.querySelector("input").files = one.files
  }
  const over = (event) => {
    event.preventDefault()
    setOver(true)
  }
  return html`<div ref=${around} class=${`drop ${isOver ? "over" : ""}`} onDragOver=${over} onDragLeave=${() => setOver(false)} onDrop=${take}>
    <${Field} label=${t("play.hear.file")} hint=${t("play.hear.file.hint")} name="file" type="file" required accept=${acceptedBy({ modalities: ["audio"] })} />
  </div>`
}

const spoken = (code, language) => {
  try {
    return new Intl.DisplayNames(language, { type: "language" }).of(code)
  } catch {
    return code
  }
}

const usedOf = (t, language, reply) =>
  [
    t("play.hear.seconds", { seconds: count(reply.usage.seconds, language) }),
    reply.language && t("play.hear.spoken", { language: spoken(reply.language, language) }),
  ]
    .filter(Boolean)
    .join(" · ")

const Segments = ({ segments }) => {
  const { t, language } = useText()
  const columns = [
    {
      key: "time",
      label: t("time"),
      cell: ({ start, end }) => `${clock(start, language)} – ${clock(end, language)}`,
    },
    { key: "text", label: t("play.hear.text"), wide: true, cell: ({ text }) => text.trim() },
  ]
  return html`<h2>${t("play.hear.segments")}</h2>
    <${Table} caption=${t("play.hear.segments")} columns=${columns} rows=${segments} />`
}

const Result = ({ text, segments = [] }) => {
  const { t } = useText()
  return html`
    <h2>${t("play.hear.text")}</h2>
    ${text ? html`<p class="words">${text}</p>` : html`<p class="quiet">${t("play.hear.nothing")}</p>`}
    ${segments.some(({ end }) => end > 0) && html`<${Segments} segments=${segments} />`}
  `
}

/** What is said in a file. */
export const PlayTranscribe = ({ models }) => {
  const { t, language } = useText()
  const call = useCall()
  const { answer, ask } = useAnswer()
  const send = async ({ file, ...rest }) => {
    const fields = transcriptionFields(rest)
    const form = new FormData()
    for (const [name, value] of Object.entries(fields)) form.append(name, value)
    form.append("file", file)
    await ask({ name: file.name, ...fields }, call("/v1/audio/transcriptions", { form }))
  }
  const { sent, reply } = answer ?? {}
  return html`<section class="card" aria-label=${t("play.tab.transcribe")}>
    <${Form} onSubmit=${send} label=${t("play.tab.transcribe")} actions=${html`<${Submit}>${t("play.hear.send")}<//>`}>
      <${AudioField} />
      <div class="fields">
        <${ModelField} models=${models} />
        <${Field} label=${t("play.hear.language")} hint=${t("play.hear.language.hint")} name="language" maxlength="20" />
      </div>
      <${Field} label=${t("play.hear.prompt")} hint=${t("play.hear.prompt.hint")} name="prompt" maxlength="2000" />
    <//>
    <${Paid} used=${reply && usedOf(t, language, reply)} cost=${reply?.usage.cost_idr} callId=${reply?.callId} />
    ${reply && html`<${Result} ...${reply} /><${Code} write=${() => transcriptionCode(apiBase(), sent)} />`}
  </section>`
}
