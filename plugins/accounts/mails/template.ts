/** What a mail says, in one language. */
export interface MailContent {
  readonly subject: string
  readonly greeting: string
  readonly paragraphs: readonly string[]
  readonly action?: { readonly label: string; readonly url: string }
  /** Smaller, below the action. */
  readonly notes: readonly string[]
}

/** Where a mail's links lead. */
export interface MailLinks {
  /** Of the deployment, as people know it. */
  readonly site: string
  readonly signIn: string
  readonly forgot: string
}

/** The letters of one language. */
export interface MailTemplates {
  verify(places: MailLinks, url: string): MailContent
  /** Somebody signed up with an address that has a verified account. */
  registered(places: MailLinks): MailContent
  reset(places: MailLinks, url: string): MailContent
  /** The password was changed by a link like that. */
  changed(places: MailLinks): MailContent
}
