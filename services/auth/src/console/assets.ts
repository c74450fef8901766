// Files of the console: its own modules and style sheet, the sheets of all pages, and lit-html. Read at first use.
import { readFileSync } from 'node:fs'
import { openAssets } from '@services/common/pages/assets'
import { KIT_FILES } from '@services/common/pages/document'

/** Module for browsers of the package, which Node resolves to its own variant. */
const litHtml = (): string => {
  const url = new URL('../lit-html.js', import.meta.resolve('lit-html'))
  return readFileSync(url, 'utf8').replace(/\n\/\/# sourceMappingURL=.*/, '')
}

export const openConsoleAssets = () =>
  openAssets([KIT_FILES, new URL('browser/', import.meta.url)], { 'lit.js': litHtml })
