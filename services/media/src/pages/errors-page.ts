import type { ErrorCatalogue } from '@services/common/errors'
import { html } from './html.ts'
import { plainPage } from './plain-page.ts'

/** Where `reference` of an error leads, with the code as the fragment; under the address of the API's documentation. */
export const ERRORS_PATH = '/docs/errors'

/** Every code with its status and text. Nothing is loaded and nothing runs. */
export function errorsPage(siteName: string, catalogue: ErrorCatalogue): string {
  const rows = Object.entries(catalogue).map(
    ([code, { status, message }]) =>
      html`<dt id="${code}"><code>${code}</code> (${status})</dt>\n<dd>${message}</dd>\n`,
  )
  return plainPage(
    `Errors of ${siteName}`,
    html`<h1>Errors</h1>
<dl>
${rows}</dl>`,
  )
}
