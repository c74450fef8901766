/**
 * The text part of a mail that has only HTML: links as `text (url)`, blocks on lines of their own, nothing of what is not
 * shown. For readers of mail, not for browsers: it knows the entities that our escaping and most templates use.
 */
export function htmlToText(html: string): string {
  let text = ''
  let link: { href: string; start: number } | undefined
  for (let at = 0; at < html.length; ) {
    const end = endOfToken(html, at)
    const token = html.slice(at, end)
    at = end
    const tag = /^<(\/?)([a-z][a-z0-9]*)/i.exec(token)
    const name = tag?.[2]?.toLowerCase()
    const closes = tag?.[1] === '/'
    if (!name) {
      text += token.startsWith('<!') ? '' : decodeEntities(token).replaceAll(/[ \t\r\n]+/g, ' ')
    } else if (HIDDEN.has(name)) {
      if (!closes) at = endOfHidden(html, at, name)
    } else if (name === 'a') {
      if (link) text = endLink(text, link)
      link = closes ? undefined : { href: attribute(token, 'href'), start: text.length }
    } else {
      text += textOfTag(name, closes, token)
    }
  }
  if (link) text = endLink(text, link)
  return tidy(text)
}

/** Where the tag, comment or text at `at` ends. One that never does takes all the rest: looking again would take forever. */
function endOfToken(html: string, at: number): number {
  if (html.startsWith('<!--', at)) return endOr(html, html.indexOf('-->', at), 3)
  if (!/^<[a-z/!]/i.test(html.slice(at, at + 2))) return endOr(html, html.indexOf('<', at + 1), 0)
  TAG_REST.lastIndex = at
  return TAG_REST.test(html) ? TAG_REST.lastIndex : html.length
}

/** Nothing inside a script or a style sheet is a tag but its end. */
function endOfHidden(html: string, from: number, name: string): number {
  const end = new RegExp(`</${name}`, 'gi')
  end.lastIndex = from
  return end.exec(html)?.index ?? html.length
}

const endOr = (html: string, found: number, length: number) => (found === -1 ? html.length : found + length)

const TAG_REST = /<(?:"[^"]*"|'[^']*'|[^"'>])*>/y

const HIDDEN = new Set(['head', 'script', 'style', 'title', 'template'])
const BLOCKS = /^(p|div|h[1-6]|table|ul|ol|blockquote|section|header|footer|article|pre|hr)$/

function textOfTag(name: string, closes: boolean, token: string): string {
  if (BLOCKS.test(name)) return '\n\n'
  if (name === 'br' || name === 'tr') return '\n'
  if (name === 'li' && !closes) return '\n- '
  if ((name === 'td' || name === 'th') && closes) return ' '
  return name === 'img' ? attribute(token, 'alt') : ''
}

function endLink(text: string, { href, start }: { href: string; start: number }): string {
  const shown = text.slice(start).trim()
  if (!/^(https?|mailto|tel|[a-z][a-z0-9+.-]*):/i.test(href)) return text
  if (shown === '') return `${text}${href}`
  return shown === href || href === `mailto:${shown}` ? text : `${text.trimEnd()} (${href})`
}

function attribute(tag: string, name: string): string {
  const found = new RegExp(`\\s${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)'|([^\\s>]*))`, 'i').exec(tag)
  return decodeEntities(found?.[1] ?? found?.[2] ?? found?.[3] ?? '').trim()
}

const NAMED: Record<string, string> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
  copy: '©',
  reg: '®',
  trade: '™',
  hellip: '…',
  ndash: '–',
  mdash: '—',
  bull: '•',
  middot: '·',
  laquo: '«',
  raquo: '»',
  lsquo: '‘',
  rsquo: '’',
  ldquo: '“',
  rdquo: '”',
  bdquo: '„',
  euro: '€',
  auml: 'ä',
  ouml: 'ö',
  uuml: 'ü',
  Auml: 'Ä',
  Ouml: 'Ö',
  Uuml: 'Ü',
  szlig: 'ß',
  zwnj: '',
  zwj: '',
  shy: '',
}

const decodeEntities = (text: string): string =>
  text.replaceAll(
    /&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]{2,8}));/gi,
    (whole, decimal, hex, name: string | undefined) => {
      if (name !== undefined) return Object.hasOwn(NAMED, name) ? (NAMED[name] as string) : whole
      const code = decimal ? Number(decimal) : Number.parseInt(hex, 16)
      return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : ''
    },
  )

const tidy = (text: string): string =>
  `${text
    .split('\n')
    .map((line) => line.replaceAll(/ {2,}/g, ' ').trim())
    .join('\n')
    .replaceAll(/\n{3,}/g, '\n\n')
    .trim()}\n`
