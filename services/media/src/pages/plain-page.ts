import { type Html, html, toText } from './html.ts'

/** Nothing is loaded and nothing runs. */
export const plainPagePolicy = "default-src 'none'; frame-ancestors 'none'"

/** A page of text alone. Nothing is loaded and nothing runs. */
export const plainPage = (title: string, body: Html): string =>
  toText(html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
</head>
<body>
${body}
</body>
</html>
`)
