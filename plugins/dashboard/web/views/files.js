import { useState } from "preact/hooks"
import { useText } from "../app.js"
import { html } from "../html.js"
import { Drop } from "../parts/drop.js"
import { Field } from "../parts/field.js"
import { FileList, useFiles } from "./file-list.js"

const uploadable = ["knowledge", "batch_input"]
const purposes = [...uploadable, "batch_output", "batch_error"]
const accept = { knowledge: ".pdf,.txt,.md,.html,.docx,.csv", batch_input: ".jsonl" }

const Options = ({ of: names }) => {
  const { t } = useText()
  return names.map(
    (name) => html`<option key=${name} value=${name}>${t(`purpose.${name}`)}</option>`,
  )
}

/** All files of the account: upload, look, download, delete. */
export const Files = () => {
  const { t } = useText()
  const [purpose, choose] = useState("knowledge")
  const [shown, show] = useState("")
  const list = useFiles(shown === "" ? {} : { purpose: shown })
  return html`
    <h1>${t("nav.files")}</h1>
    <section class="card" aria-label=${t("upload")}>
      <${Field} label=${t("file.purpose")} as="select" value=${purpose} onChange=${(event) => choose(event.target.value)}><${Options} of=${uploadable} /><//>
      <${Drop} label=${t("upload")} hint=${t(`upload.hint.${purpose}`)} accept=${accept[purpose]} purpose=${purpose} onUploaded=${list.reload} />
    </section>
    <section class="card" aria-label=${t("nav.files")}>
      <${Field} label=${t("file.shown")} as="select" value=${shown} onChange=${(event) => show(event.target.value)}><option value="">${t("all")}</option><${Options} of=${purposes} /><//>
      <${FileList} list=${list} none=${t("files.none")} />
    </section>
  `
}
