/** Words of the built-in mails; every one is laid out the same way. */
interface Words {
  heading: string
  text: string
  button: string
  footer: string
}

const WORDS = {
  confirmation: {
    heading: 'Confirm your email address',
    text: 'Welcome! Confirm {{ .Email }} to finish creating your account at {{ .SiteURL }}.',
    button: 'Confirm email address',
    footer: 'If you did not create an account, you can ignore this mail.',
  },
} as const satisfies Record<string, Words>

type SentKind = string

/**
 * A table layout with inline styles, because mail readers drop style sheets; the one style block only adds dark colours
 * where it is understood. The link is shown as text too, for readers that block buttons.
 */
export function builtInHtml(kind: SentKind): string {
  const words = WORDS[kind as 'confirmation'] ?? { ...WORDS.confirmation, heading: kind }
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<meta name="supported-color-schemes" content="light dark">
<title>${words.heading}</title>
<style>
@media (prefers-color-scheme: dark) {
  .page { background: #111418 !important }
  .card { background: #1b2027 !important }
  .card h1, .card p { color: #e8ecf1 !important }
  .card p.quiet { color: #9aa5b1 !important }
  .card .quiet a { color: #8ab4ff !important }
}
</style>
</head>
<body class="page" style="margin:0;padding:0;background:#f3f5f8">
<table role="presentation" class="page" width="100%" cellpadding="0" cellspacing="0" style="background:#f3f5f8"><tr><td align="center" style="padding:32px 16px">
<table role="presentation" class="card" width="100%" cellpadding="0" cellspacing="0" style="max-width:480px;background:#ffffff;border-radius:12px"><tr><td style="padding:32px;font-family:-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif">
<h1 style="margin:0 0 16px;font-size:22px;line-height:1.3;color:#16202c">${words.heading}</h1>
<p style="margin:0 0 24px;font-size:16px;line-height:1.5;color:#16202c">${words.text}</p>
<table role="presentation" cellpadding="0" cellspacing="0"><tr><td style="border-radius:8px;background:#2457d6">
<a href="{{ .ConfirmationURL }}" style="display:inline-block;padding:13px 24px;font-size:16px;font-weight:600;color:#ffffff;text-decoration:none;border-radius:8px">${words.button}</a>
</td></tr></table>
<p class="quiet" style="margin:24px 0 4px;font-size:14px;color:#5b6773">Or enter this code:</p>
<p class="code" style="margin:0 0 24px;font-size:28px;font-weight:700;letter-spacing:6px;color:#16202c;font-family:ui-monospace,Menlo,Consolas,monospace">{{ .Token }}</p>
<p class="quiet" style="margin:0 0 8px;font-size:13px;line-height:1.5;color:#5b6773">If the button does not work, open this address:<br><a href="{{ .ConfirmationURL }}" style="color:#2457d6;word-break:break-all">{{ .ConfirmationURL }}</a></p>
<p class="quiet" style="margin:0;font-size:13px;line-height:1.5;color:#5b6773">${words.footer}</p>
</td></tr></table>
</td></tr></table>
</body>
</html>
`
}

export function builtInText(kind: SentKind): string {
  const words = WORDS[kind as 'confirmation'] ?? { ...WORDS.confirmation, heading: kind }
  return `${words.heading}\n\n${words.text}\n\n${words.button}: {{ .ConfirmationURL }}\n\nOr enter this code: {{ .Token }}\n\n${words.footer}\n`
}
