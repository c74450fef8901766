import { html } from '@services/common/html'
import type { Assets } from '@services/common/pages/assets'
import { KIT_STYLES, PAGE_HEADERS, PAGE_POLICY, strictDocument } from '@services/common/pages/document'

/** Markup is made by lit-html alone, in its own policy of trusted types. */
export const SHELL_HEADERS = {
  ...PAGE_HEADERS,
  'content-security-policy': `${PAGE_POLICY}; require-trusted-types-for 'script'; trusted-types lit-html`,
}

/** The one page of the console, the same for everyone: its scripts ask for the session. `at` leads to the assets. */
export const shell = (assets: Assets, at: string): string =>
  strictDocument({
    language: 'en',
    title: 'Console',
    styles: [...KIT_STYLES, 'console.css', 'charts.css'].map((name) => `${at}${assets.address(name)}`),
    scripts: ['main.js', 'reload.js'].map((name) => `${at}${assets.address(name)}`),
    body: html`<header></header>
<main id="main"><p class="scripted">The console is loading. If this stays, reload the page.</p></main>
<div class="toasts"><div id="done" role="status"></div><div id="failed" role="alert"></div></div>
<noscript><p class="notice problem">The console needs JavaScript. The commands and the API do the same without it.</p></noscript>`,
  })
