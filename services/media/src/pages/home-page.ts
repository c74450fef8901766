import { html } from './html.ts'
import { plainPage } from './plain-page.ts'

/** Nothing is loaded and nothing runs. */
export const homePagePolicy = "default-src 'none'; frame-ancestors 'none'"

/** What somebody sees who opens the bare address. */
export const homePage = (siteName: string): string =>
  plainPage(
    siteName,
    html`<h1>${siteName}</h1>
<p>This service hosts short clips. How to add one: <a href="docs">the API's documentation</a> (<a href="openapi.json">OpenAPI</a>).</p>`,
  )
