import { html } from "../html.js"
import { Models } from "./models.js"

/** The signed-out page: a form, and beside it the state of the models. */
export const Entry = ({ title, models, children }) => html`<div class="entry">
  <section class="card narrow"><h1>${title}</h1>${children}</section>
  <${Models} models=${models} />
</div>`
