import { useText } from "../app.js"
import { html } from "../html.js"
import { Button } from "./button.js"
import { Loading, ProblemNotice } from "./notice.js"

/** The end of a list: its error, its loading state, or a button for the next page. */
export const More = ({ list }) => {
  const { t } = useText()
  return html`
    <${ProblemNotice} problem=${list.problem} />
    ${list.problem && html`<${Button} onClick=${list.items ? list.more : list.reload}>${t("again")}<//>`}
    ${list.busy && !list.items && html`<${Loading} />`}
    ${list.hasMore && !list.problem && html`<${Button} busy=${list.busy} onClick=${list.more}>${t("more")}<//>`}
  `
}
