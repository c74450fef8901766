import { html, toText } from './html.ts'

/** Nothing is loaded and nothing runs. */
export const homePagePolicy = "default-src 'none'; frame-ancestors 'none'"

/** What somebody sees who opens the bare address. */
export function homePage(siteName: string): string {
  return toText(html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${siteName}</title>
</head>
<body>
<h1>${siteName}</h1>
<p>This service hosts short clips. How to add one: <a href="docs">the API's documentation</a> (<a href="openapi.json">OpenAPI</a>).</p>
</body>
</html>
`)
}
