import { useState } from "preact/hooks"
import { useApp, useText } from "../app.js"
import { saveReply } from "../download.js"
import { bytes, count } from "../format.js"
import { html } from "../html.js"
import { Moment } from "../parts/amount.js"
import { Ask } from "../parts/ask.js"
import { Button } from "../parts/button.js"
import { useList } from "../parts/list.js"
import { More } from "../parts/more.js"
import { ProblemNotice } from "../parts/notice.js"
import { usePoll } from "../parts/poll.js"
import { Table } from "../parts/table.js"

const isMoving = ({ purpose, status }) =>
  purpose === "knowledge" && ["uploaded", "processing"].includes(status)

const State = ({ file }) => {
  const { t, language } = useText()
  const { status, progress = {}, status_details: why } = file
  if (file.purpose !== "knowledge") return t("file.ready")
  if (status === "failed")
    return html`<b class="bad">${t("file.failed")}</b><br /><span class="quiet">${why}</span>`
  if (progress.stage === "embedding") {
    const values = { done: progress.chunks_embedded ?? 0, all: progress.chunks ?? 0 }
    return html`<span>${t("file.embedding", { done: count(values.done, language), all: count(values.all, language) })}</span><progress max=${values.all || 1} value=${values.done} aria-label=${t("file.processing")}></progress>`
  }
  return t(`file.${status}`)
}

const columnsOf = (t, language, act) => [
  {
    key: "name",
    label: t("file.name"),
    wide: true,
    cell: (file) => html`${file.filename}<br /><code class="quiet">${file.id}</code>`,
  },
  { key: "purpose", label: t("file.purpose"), cell: ({ purpose }) => t(`purpose.${purpose}`) },
  { key: "size", label: t("file.size"), number: true, cell: (file) => bytes(file.bytes, language) },
  { key: "state", label: t("account.state"), cell: (file) => html`<${State} file=${file} />` },
  { key: "made", label: t("time"), cell: (file) => html`<${Moment} at=${file.created_at} />` },
  {
    key: "expires",
    label: t("file.expires"),
    cell: (file) => html`<${Moment} at=${file.expires_at} />`,
  },
  {
    key: "actions",
    label: t("actions"),
    cell: (file) => html`<span class="actions">
      <${Button} look="link" aria-label=${t("file.download.of", { name: file.filename })} onClick=${() => act.save(file)}>${t("file.download")}<//>
      <${Button} look="link" aria-label=${t("file.delete.of", { name: file.filename })} onClick=${() => act.ask(file)}>${t("file.delete")}<//>
    </span>`,
  },
]

/** The files of a purpose, or all; `list` is that of `useFiles`. */
export const FileList = ({ list, none }) => {
  const { t, language } = useText()
  const { v1 } = useApp()
  const [asked, ask] = useState(undefined)
  const [problem, refuse] = useState(undefined)
  const save = (file) => {
    refuse(undefined)
    return v1
      .send("GET", `/v1/files/${file.id}/content`)
      .then((reply) => saveReply(reply, file.filename), refuse)
  }
  const remove = async () => {
    await v1.remove(`/v1/files/${asked.id}`)
    ask(undefined)
    list.reload()
  }
  return html`
    <${ProblemNotice} problem=${problem} />
    ${list.items?.length === 0 && html`<p class="quiet">${none}</p>`}
    ${list.items?.length > 0 && html`<${Table} caption=${t("nav.files")} columns=${columnsOf(t, language, { save, ask })} rows=${list.items} />`}
    <${More} list=${list} />
    ${asked && html`<${Ask} title=${t("file.delete.ask", { name: asked.filename })} what=${t("file.delete.what")} yes=${t("file.delete")} act=${remove} onClose=${() => ask(undefined)} />`}
  `
}

/** The account's files, followed while one of them is read. */
export const useFiles = (query) => {
  const { v1 } = useApp()
  const list = useList("/v1/files", query, v1)
  usePoll(list.items?.some(isMoving) ?? false, list.refresh)
  return list
}
