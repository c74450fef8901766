/** Code points of a name: with four bytes each it stays below the 255 bytes of file systems. */
const MAX_NAME = 60

/** Content-Disposition of a title (RFC 6266): all in `filename*`; for old clients ASCII, or the id, in `filename`. */
export function saveAs(title: string, { id, ending }: { id: string; ending: string }): string {
  const name = nameFrom(title)
  // Some clients would decode a percent sign, others would not.
  const ascii = nameFrom(name.normalize('NFKD').replaceAll(/[^ -~]|%/g, ''))
  const plain = `attachment; filename="${ascii || id}.${ending}"`
  return name === ascii || name === '' ? plain : `${plain}; filename*=UTF-8''${encode(name)}.${ending}`
}

/** Name of a file within an archive or folder: the title, or the id without one that can be a name. */
export const fileName = (title: string, { id, ending }: { id: string; ending: string }): string =>
  `${nameFrom(title) || id}.${ending}`

/** Drops leading dots, characters unfit for file systems or quotes, and direction marks, which disguise extensions. */
function nameFrom(title: string): string {
  const plain = title
    .toWellFormed()
    .replaceAll(/[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, '')
    .replaceAll(/[/\\:*?"<>|\s]+/g, ' ')
  const name = [...plain.replace(/^[. ]+/, '')]
    .slice(0, MAX_NAME)
    .join('')
    .replace(/[. ]+$/, '')
  return DEVICE.test(name) ? '' : name
}

/** Device names on Windows, with any extension. */
const DEVICE = /^(con|prn|aux|nul|(com|lpt)[0-9¹²³]) *(\.|$)/i

/** Also encodes the characters that `encodeURIComponent` leaves and RFC 8187 3.2.1 forbids. */
const encode = (name: string) =>
  encodeURIComponent(name).replaceAll(/['()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
