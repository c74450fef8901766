import { createHash } from 'node:crypto'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { escapeHtml } from '@services/common/html'
import type { Config } from '../../config.ts'

/** GET / for people who open the base URL in a browser. All other callers get 404. */
export const startPageRoutes: FastifyPluginAsyncTypebox<{ config: Config }> = async (app, { config }) => {
  const page = startPage(config)
  app.get('/', { schema: { hide: true } }, async (request, reply) => {
    reply.header('vary', 'accept')
    if (!request.headers.accept?.includes('text/html')) return reply.callNotFound()
    return reply
      .type('text/html; charset=utf-8')
      .header('content-security-policy', POLICY)
      .header('referrer-policy', 'no-referrer')
      .send(page)
  })
}

const CSS = `
:root { color-scheme: light dark; --ground: #f4f5f7; --card: #fff; --line: #e3e6eb; --text: #15181e; --quiet: #5b6371; --accent: #1d5fd6 }
@media (prefers-color-scheme: dark) { :root { --ground: #0d0f13; --card: #171a20; --line: #272c35; --text: #f0f2f5; --quiet: #9aa3b2; --accent: #86b1ff } }
* { box-sizing: border-box }
body { margin: 0; padding: 12vh 1rem 3rem; background: var(--ground); color: var(--text); font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif }
main { max-width: 32rem; margin: 0 auto; padding: 1.5rem; border: 1px solid var(--line); border-radius: 16px; background: var(--card) }
h1 { margin: 0; font-size: 1.375rem; letter-spacing: -.015em }
p { margin: .25rem 0 0; color: var(--quiet) }
ul { margin: 1.25rem 0 0; padding: 0; list-style: none }
li { padding: .625rem 0; border-top: 1px solid var(--line) }
li:last-child { padding-bottom: 0 }
a { color: var(--accent); font-weight: 600; text-decoration: none }
a:hover { text-decoration: underline }
a:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 6px }
`

/** Permits the page's own style sheet and nothing else. */
const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(CSS).digest('base64')}'`,
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const linksOf = ({ console, pages }: Config) => [
  ...(pages.enabled ? [{ path: '/ui/sign-in', meaning: 'the pages for users: sign-in, sign-up, account' }] : []),
  ...(console.enabled && console.port === undefined
    ? [{ path: '/console', meaning: 'the console for administrators' }]
    : []),
  { path: '/docs', meaning: 'every endpoint, with its requests and answers' },
  { path: '/settings', meaning: 'the enabled ways to sign in' },
  { path: '/health', meaning: 'the version, if the service answers' },
]

function startPage(config: Config): string {
  const items = linksOf(config).map(
    ({ path, meaning }) =>
      `<li><a href="${escapeHtml(config.server.externalUrl + path)}">${path}</a><p>${meaning}</p></li>`,
  )
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>Auth</title>
<link rel="icon" href="data:,">
<style>${CSS}</style>
</head>
<body>
<main>
<h1>Auth</h1>
<p>User management and authentication, for applications to call.</p>
<ul>
${items.join('\n')}
</ul>
</main>
</body>
</html>
`
}
