// Built-in mails: one layout, with words in a file per language. A language lacks no word (type MailWords). Tests:
// ../mail-templates.test.ts.
import type { MailWords, Words } from './mail-words.ts'

export const builtInMail = (locale: string, words: MailWords, { linkHint }: Words) => ({
  subject: words.subject,
  html: htmlOf(locale, words, linkHint),
  text: textOf(words),
})

const FONT = "-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif"

/**
 * Inline styles, because mail readers drop style sheets (ours only adds dark colours). A table of the card's width
 * surrounds it: Outlook ignores max-width. The link is repeated as text for readers that block buttons.
 */
function htmlOf(locale: string, { heading, text, button, code, footer }: MailWords, linkHint: string): string {
  return `<!doctype html>
<html lang="${locale}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="supported-color-schemes" content="light dark">
<meta name="format-detection" content="telephone=no,date=no,address=no,email=no">
<title>${heading}</title>
<style>
:root { color-scheme: light dark; supported-color-schemes: light dark }
@media (prefers-color-scheme: dark) {
  .page { background: #111418 !important }
  .card { background: #1b2027 !important }
  .card h1, .card p { color: #e8ecf1 !important }
  .card p.quiet { color: #9aa5b1 !important }
  .card .quiet a { color: #8ab4ff !important }
  .card .code { background: #2a313b !important }
}
</style>
</head>
<body class="page" style="margin:0;padding:0;background:#f3f5f8;-webkit-text-size-adjust:100%">
<table role="presentation" class="page" width="100%" cellpadding="0" cellspacing="0" border="0" style="background:#f3f5f8"><tr><td align="center" style="padding:32px 16px">
<!--[if mso]><table role="presentation" width="480" cellpadding="0" cellspacing="0" border="0"><tr><td><![endif]-->
<table role="presentation" class="card" width="100%" cellpadding="0" cellspacing="0" border="0" style="max-width:480px;background:#ffffff;border-radius:12px"><tr><td style="padding:32px 28px;font-family:${FONT}">
<h1 style="margin:0 0 16px;font-size:22px;line-height:1.3;color:#16202c">${heading}</h1>
<p style="margin:0;font-size:16px;line-height:1.5;color:#16202c;word-break:break-word">${text}</p>
${button ? buttonOf(button) : ''}${code ? codeOf(code) : ''}${button ? linkOf(linkHint) : ''}${footerOf(footer, !button && !code)}
</td></tr></table>
<!--[if mso]></td></tr></table><![endif]-->
</td></tr></table>
</body>
</html>
`
}

const buttonOf = (
  label: string,
) => `<table role="presentation" cellpadding="0" cellspacing="0" border="0" style="margin:24px 0 0"><tr><td align="center" style="border-radius:8px;background:#2457d6">
<a href="{{ .ConfirmationURL }}" style="display:inline-block;padding:13px 24px;font-size:16px;font-weight:600;color:#ffffff;text-decoration:none;border-radius:8px">${label}</a>
</td></tr></table>
`

/** A link that a newer one replaced has no code. */
const codeOf = (
  label: string,
) => `{{ if .Token }}<p class="quiet" style="margin:24px 0 6px;font-size:14px;color:#5b6773">${label}:</p>
<p class="code" style="margin:0;padding:12px 8px;border-radius:8px;background:#eef1f6;text-align:center;font-size:26px;line-height:1.2;font-weight:700;letter-spacing:5px;color:#16202c;font-family:ui-monospace,Menlo,Consolas,monospace">{{ .Token }}</p>{{ end }}
`

const linkOf = (
  hint: string,
) => `<p class="quiet" style="margin:24px 0 0;font-size:13px;line-height:1.5;color:#5b6773">${hint}<br><a href="{{ .ConfirmationURL }}" style="color:#2457d6;word-break:break-all">{{ .ConfirmationURL }}</a></p>
`

/** Notifications exist for their footer; in other mails it is small print. */
const footerOf = (footer: string, isThePoint: boolean) =>
  isThePoint
    ? `<p style="margin:16px 0 0;font-size:16px;line-height:1.5;color:#16202c;word-break:break-word">${footer}</p>`
    : `<p class="quiet" style="margin:24px 0 0;font-size:13px;line-height:1.5;color:#5b6773;word-break:break-word">${footer}</p>`

const codeLineOf = (label: string) => `{{ if .Token }}${label}: {{ .Token }}{{ end }}`

function textOf({ heading, text, button, code, footer }: MailWords): string {
  const parts = [heading, text, button && `${button}: {{ .ConfirmationURL }}`, code && codeLineOf(code), footer]
  return `${parts.filter(Boolean).join('\n\n')}\n`
}
