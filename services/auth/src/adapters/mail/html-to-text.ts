import { Parser } from 'htmlparser2'

const HIDDEN = new Set(['head', 'script', 'style', 'title', 'template'])
const BLOCKS = /^(p|div|h[1-6]|table|ul|ol|blockquote|section|header|footer|article|pre|hr)$/

/** Makes the text part of a mail that has only HTML: links as `text (url)`, blocks apart, list items with a dash. */
export function htmlToText(html: string): string {
  let text = ''
  let hiddenDepth = 0
  let link: { href: string; start: number } | undefined
  const endLink = () => {
    if (link) text = withAddress(text, link)
    link = undefined
  }
  const parser = new Parser({
    onopentag(name, { href = '', alt = '' }) {
      if (HIDDEN.has(name)) hiddenDepth++
      if (hiddenDepth > 0) return
      if (BLOCKS.test(name)) text += '\n\n'
      else if (name === 'br' || name === 'tr') text += '\n'
      else if (name === 'li') text += '\n- '
      else if (name === 'img') text += alt
      else if (name === 'a') {
        endLink()
        link = { href: href.trim(), start: text.length }
      }
    },
    ontext(part) {
      if (hiddenDepth === 0) text += part.replaceAll(/\s+/g, ' ')
    },
    onclosetag(name) {
      if (HIDDEN.has(name)) hiddenDepth--
      else if (hiddenDepth > 0) return
      else if (name === 'a') endLink()
      else if (name === 'td' || name === 'th') text += ' '
      else if (BLOCKS.test(name)) text += '\n\n'
    },
  })
  parser.end(html)
  return tidy(text)
}

function withAddress(text: string, { href, start }: { href: string; start: number }): string {
  const shown = text.slice(start).trim()
  if (!/^[a-z][a-z0-9+.-]*:/i.test(href) || shown === href || href === `mailto:${shown}`) return text
  return shown === '' ? `${text}${href}` : `${text.trimEnd()} (${href})`
}

const tidy = (text: string): string =>
  `${text
    .split('\n')
    .map((line) => line.replaceAll(/ {2,}/g, ' ').trim())
    .join('\n')
    .replaceAll(/\n{3,}/g, '\n\n')
    .trim()}\n`
