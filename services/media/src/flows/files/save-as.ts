/** Code points of a name; with four bytes each it stays below the 255 bytes that file systems take. */
const MAX_NAME = 60

/**
 * The Content-Disposition that saves a file under a title (RFC 6266): whole in `filename*`, and for clients that do not
 * read it in `filename` as far as it is ASCII, or else by the id of the clip.
 */
export function saveAs(title: string, { id, ending }: { id: string; ending: string }): string {
  const name = nameFrom(title)
  // A percent sign would be decoded by some clients, and left alone by others.
  const ascii = nameFrom(name.normalize('NFKD').replaceAll(/[^ -~]|%/g, ''))
  const plain = `attachment; filename="${ascii || id}.${ending}"`
  return name === ascii || name === '' ? plain : `${plain}; filename*=UTF-8''${encode(name)}.${ending}`
}

/**
 * Leaves out what file systems refuse, what a quoted string would have to escape, dots that hide a file, and marks of
 * direction, by which an ending could be made to look like another one.
 */
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

/** Windows takes these for devices, whatever ending they have. */
const DEVICE = /^(con|prn|aux|nul|(com|lpt)[0-9¹²³]) *(\.|$)/i

/** RFC 8187 3.2.1: what `encodeURIComponent` leaves as it is and a header may not hold. */
const encode = (name: string) =>
  encodeURIComponent(name).replaceAll(/['()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
