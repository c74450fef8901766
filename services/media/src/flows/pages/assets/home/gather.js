// Reads what was dropped: files, and folders with all below them within bounds.
/** Files that the page takes at once, and that a list of an API call may have. */
export const MOST_FILES = 500
const DEEPEST = 8
/** Entries of folders that are read, of whatever type. */
const MOST_ENTRIES = 5_000

/** Returns files in the order of their folders; those in folders only if `isAccepted`. */
export async function droppedFiles({ items, files }, isAccepted) {
  // Before the first wait: the browser empties the list then.
  const entries = Array.from(items ?? [], (item) => item.webkitGetAsEntry?.()).filter(Boolean)
  if (!entries.some(({ isDirectory }) => isDirectory)) return { files: [...files], otherTypes: 0 }
  const found = { files: [], otherTypes: 0, entries: 0 }
  for (const entry of entries) await read(entry, 0, found, isAccepted)
  return found
}

async function read(entry, depth, found, isAccepted) {
  // One more than is taken, so that the page can say that some are left out.
  if (depth > DEEPEST || found.files.length > MOST_FILES || ++found.entries > MOST_ENTRIES) return
  if (entry.isDirectory) {
    for (const each of await entriesOf(entry)) await read(each, depth + 1, found, isAccepted)
    return
  }
  const file = await new Promise((resolve) => entry.file(resolve, () => resolve(undefined)))
  if (!file) return
  if (depth === 0 || isAccepted(file)) found.files.push(file)
  else found.otherTypes++
}

/** Lists a folder, which comes in parts of a hundred; one that cannot be read is empty. */
async function entriesOf(folder) {
  const reader = folder.createReader()
  const all = []
  for (;;) {
    const some = await new Promise((resolve) => reader.readEntries(resolve, () => resolve([])))
    all.push(...some)
    if (some.length === 0 || all.length > MOST_ENTRIES) return all.sort((a, b) => a.name.localeCompare(b.name))
  }
}

/** Longest title that the service takes, in characters. */
const LONGEST_TITLE = 200

/** Title that a file's name proposes: without its ending, on one line, and no longer than the service takes. */
export const titleOf = ({ name }) => {
  const line = name
    .replace(/(?<=.)\.\w{1,5}$/, '')
    .normalize('NFC')
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .trim()
  return [...line].slice(0, LONGEST_TITLE).join('').trim()
}
