import { useState } from "preact/hooks"
import { useApp, useText } from "../app.js"
import { count } from "../format.js"
import { html } from "../html.js"
import { useLoad } from "../parts/load.js"
import { Loading, ProblemNotice } from "../parts/notice.js"
import { Table } from "../parts/table.js"

/** More are in the file, which can be downloaded. */
const mostShown = 50

const parsed = (line) => {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

const columnsOf = (t, language) => [
  {
    key: "line",
    label: t("batch.line"),
    cell: ({ line, custom_id: id }) => id ?? (line && count(line, language)),
  },
  { key: "code", label: t("batch.code"), cell: ({ code }) => html`<code>${code}</code>` },
  { key: "message", label: t("batch.message"), wide: true, cell: ({ message }) => message },
]

const Errors = ({ errors }) => {
  const { t, language } = useText()
  return html`<${Table} caption=${t("batch.errors.of")} columns=${columnsOf(t, language)} rows=${errors.slice(0, mostShown)} rowKey=${(_, index) => index} />
    ${errors.length > mostShown && html`<p class="quiet">${t("batch.errors.more", { count: count(errors.length - mostShown, language) })}</p>`}`
}

const errorOf = ({ custom_id, error, response }) => {
  const { code, type, message } = error ?? response?.body?.error ?? {}
  return { custom_id, code: code ?? type, message }
}

const ErrorFile = ({ id }) => {
  const { v1 } = useApp()
  const read = async () => {
    const text = await (await v1.send("GET", `/v1/files/${id}/content`)).text()
    return text
      .split("\n")
      .map(parsed)
      .filter((line) => line !== undefined)
      .map(errorOf)
  }
  const { data, problem } = useLoad(read, [id])
  if (problem) return html`<${ProblemNotice} problem=${problem} />`
  return data ? html`<${Errors} errors=${data} />` : html`<${Loading} />`
}

/** What is wrong with a batch's lines: found before it ran, or when they ran. */
export const BatchErrors = ({ batch }) => {
  const { t } = useText()
  const [isOpen, setOpen] = useState(false)
  const found = batch.errors?.data ?? []
  if (found.length === 0 && !batch.error_file_id) return null
  return html`<details onToggle=${(event) => setOpen(event.target.open)}>
    <summary>${t("batch.errors.of")}</summary>
    ${isOpen && found.length > 0 && html`<${Errors} errors=${found} />`}
    ${isOpen && batch.error_file_id && html`<${ErrorFile} id=${batch.error_file_id} />`}
  </details>`
}
