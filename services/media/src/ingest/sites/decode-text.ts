/** Part of a page that may declare its encoding (HTML 13.2.3.2). */
const PRESCAN_BYTES = 1024

/** Decodes by byte order mark, header or `<meta>`, else as UTF-8; invalid bytes become U+FFFD. */
export function decodeText(bytes: Buffer, contentType = ''): string {
  const label = charsetOfMark(bytes) ?? charsetIn(contentType) ?? charsetOfPage(bytes) ?? 'utf-8'
  try {
    return new TextDecoder(label).decode(bytes)
  } catch {
    return new TextDecoder().decode(bytes)
  }
}

function charsetOfMark(bytes: Buffer): string | undefined {
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf-16be'
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le'
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 'utf-8' : undefined
}

/** A page that declares UTF-16 in ASCII bytes is mistaken (HTML 13.2.3.2). */
function charsetOfPage(bytes: Buffer): string | undefined {
  const found = /<meta\s[^>]{0,500}charset[^>]{0,100}/i.exec(bytes.subarray(0, PRESCAN_BYTES).toString('latin1'))
  const charset = charsetIn(found?.[0] ?? '')
  return charset && /^utf-?16/i.test(charset) ? undefined : charset
}

const charsetIn = (text: string) => /charset\s*=\s*(?:["']\s*)?([\w.:-]{1,40})/i.exec(text)?.[1]
