import { type Html, html } from '@services/common/html'
import type { Config } from '../../config.ts'

type Site = Pick<Config['site'], 'name' | 'baseUrl'>

/** Header of the pages of the service. */
export const siteHeader = ({ name, baseUrl }: Site): Html =>
  html`<header class="bar"><a href="${baseUrl}/">${name}</a><nav aria-label="Documentation"><a href="${baseUrl}/docs">API</a><a href="${baseUrl}/docs/errors">Errors</a></nav></header>`
